package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func put(text string) func(f *os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	}
}

// names lists a folder: no temporary file may stay.
func names(t *testing.T, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	for _, text := range []string{"first", "second"} {
		if err := Write(path, put(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); string(b) != text {
			t.Fatalf("%q, %v; want %q", b, err, text)
		}
	}
	broken := errors.New("broken")
	err := Write(path, func(f *os.File) error { return errors.Join(put("third")(f), broken) })
	if b, _ := os.ReadFile(path); !errors.Is(err, broken) || string(b) != "second" {
		t.Errorf("%v, then the file holds %q", err, b)
	}
	if got := names(t, dir); got != "out" {
		t.Errorf("left in the folder: %s", got)
	}
}

// TestModeAndLink keeps the mode and replaces what a link names.
func TestModeAndLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("out", link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, put("new")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(path)
	if b, _ := os.ReadFile(path); err != nil || string(b) != "new" || st.Mode() != 0o640 {
		t.Errorf("%v: %q with mode %v", err, b, st.Mode())
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

// TestRefused tells what cannot be written, by the name that was given.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "readonly"), []byte("old"), 0o444); err != nil {
		t.Fatal(err)
	}
	cases := []string{"folder", "dangling", "no/such/folder", strings.Repeat("n", 300)}
	if os.Geteuid() != 0 { // nothing is read-only for root
		cases = append(cases, "readonly")
	}
	for _, name := range cases {
		path := filepath.Join(dir, name)
		err := Write(path, put("new"))
		var p *fs.PathError
		if !errors.As(err, &p) || p.Path != path {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := names(t, dir); got != "dangling folder readonly" {
		t.Errorf("in the folder: %s", got)
	}
}
