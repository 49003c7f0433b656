package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"Redistribution and use in source\nand binary forms, with or without": "BSD",
		"Permission is hereby granted, free of charge, to any person":         "MIT",
		"Apache License\n   Version 2.0, January 2004":                        "Apache-2.0",
	} {
		if got, ok := classify(text); got != want || !ok {
			t.Errorf("%q is %s, %t", text, got, ok)
		}
	}
	for _, text := range []string{"GNU GENERAL PUBLIC LICENSE\nVersion 3", "All rights reserved."} {
		if got, ok := classify(text); ok {
			t.Errorf("%q passes as %s", text, got)
		}
	}
}

func TestVulnDB(t *testing.T) {
	src, out := t.TempDir(), t.TempDir()
	report := `{"id":"GO-2020-0001","modified":"2024-05-20T16:03:47Z","aliases":["CVE-2020-1"],
"affected":[{"package":{"name":"example.com/m"},"ranges":[{"events":[{"introduced":"0"},{"fixed":"1.6.0"}]}]}]}`
	if err := os.WriteFile(filepath.Join(src, "GO-2020-0001.json"), []byte(report), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := vulndb(src, out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "index", "modules.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ms []moduleIndex
	if err := json.Unmarshal(b, &ms); err != nil {
		t.Fatal(err)
	}
	if len(ms) != 1 || ms[0].Path != "example.com/m" || len(ms[0].Vulns) != 1 || ms[0].Vulns[0].Fixed != "1.6.0" {
		t.Errorf("modules %+v", ms)
	}
	if got, err := os.ReadFile(filepath.Join(out, "ID", "GO-2020-0001.json")); err != nil || string(got) != report {
		t.Errorf("report %q, %v", got, err)
	}
	if err := vulndb(t.TempDir(), out); err == nil {
		t.Error("no reports, no error")
	}
}

func TestFindings(t *testing.T) {
	std := `{"config":{}}
{"finding":{"osv":"GO-1","fixed_version":"v1.26.9","trace":[{"module":"stdlib","function":"Execute"},{"module":"m","function":"f"}]}}
{"finding":{"osv":"GO-2","fixed_version":"v2.0.0","trace":[{"module":"example.com/m"}]}}`
	if err := findings(strings.NewReader(std)); err != nil {
		t.Error(err)
	}
	called := `{"finding":{"osv":"GO-2","fixed_version":"v2.0.0","trace":[{"module":"example.com/m","function":"f"}]}}`
	if err := findings(strings.NewReader(called)); err == nil {
		t.Error("a called vulnerability passes")
	}
	if err := findings(strings.NewReader(called[:40])); err == nil {
		t.Error("half a report passes")
	}
}
