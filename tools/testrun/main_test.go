package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	in := `{"Action":"output","Package":"m/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"noise\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"    a_test.go:3: wrong\n"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
{"Action":"output","Package":"m/a","Test":"TestSome","Output":"    a_test.go:9: needs a runtime\n"}
{"Action":"output","Package":"m/a","Test":"TestSome","Output":"--- SKIP: TestSome (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestSome"}
{"Action":"output","Package":"m/b","Test":"TestOther","Output":"    b_test.go:1: needs a runtime\n"}
{"Action":"skip","Package":"m/b","Test":"TestOther"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.1s\n"}
{"Action":"fail","Package":"m/a"}
{"Action":"output","Package":"m/c","Output":"PASS\n"}
{"Action":"output","Package":"m/c","Output":"ok  \tm/c\t0.1s\n"}
{"Action":"pass","Package":"m/c"}
{"Action":"skip","Package":"m/d"}
`
	var out strings.Builder
	skips, err := report(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := "    a_test.go:3: wrong\n--- FAIL: TestBad (0.00s)\nFAIL\tm/a\t0.1s\nok  \tm/c\t0.1s\n"; out.String() != want {
		t.Errorf("printed\n%s", out.String())
	}
	if want := []skip{{"needs a runtime", []string{"a.TestSome", "b.TestOther"}}}; !reflect.DeepEqual(skips, want) {
		t.Errorf("skips %v", skips)
	}
}
