package sym

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

// TestParseSympyValues compares both printed forms of each recorded expression
// with the values SymPy gives.
func TestParseSympyValues(t *testing.T) {
	data, err := os.ReadFile("testdata/sympy.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Tree, Plain string
		Values      [][2]json.RawMessage
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 200 {
		t.Fatalf("only %d expressions recorded", len(rows))
	}
	for _, row := range rows {
		for _, src := range []string{row.Tree, row.Plain} {
			e, err := ParseSympy(src, SympyOptions{})
			if err != nil {
				t.Errorf("%s: %v", src, err)
				continue
			}
			if back, err := Parse(e.String()); err != nil || !back.Equal(e) {
				t.Errorf("%s: %s is read back as %s, %v", src, e, back, err)
			}
			for _, v := range row.Values {
				var env MapEnv
				var want any
				dec := json.NewDecoder(strings.NewReader(string(v[1])))
				dec.UseNumber()
				if json.Unmarshal(v[0], &env) != nil || dec.Decode(&want) != nil {
					t.Fatal("malformed fixture")
				}
				if msg := differs(e, env, want); msg != "" {
					t.Errorf("%s = %s at %s: %s", src, e, v[0], msg)
				}
			}
		}
	}
}

func differs(e Expr, env Env, want any) string {
	switch want := want.(type) {
	case bool:
		got, err := EvalBool(e, env)
		if err != nil || got != want {
			return strings.TrimSpace(strings.Join([]string{"bool differs", errText(err)}, " "))
		}
	case json.Number:
		if k, err := want.Int64(); err == nil && e.Kind() == Int {
			got, err := Eval(e, env)
			if err != nil || got != k {
				return "got " + Const(got).String() + ", want " + want.String() + " " + errText(err)
			}
			return ""
		}
		f, err := want.Float64()
		if err != nil {
			return "malformed fixture"
		}
		got, err := EvalFloat(e, env)
		// SymPy adds and multiplies in its own order.
		if err != nil || math.Abs(got-f) > 4e-16*math.Abs(f) {
			return "got " + ConstFloat(got).String() + ", want " + want.String() + " " + errText(err)
		}
	default:
		return "malformed fixture"
	}
	return ""
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseSympy(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"Symbol('s27', positive=True, integer=True)", "s27"},
		{"Mul(Integer(2), Symbol('s27', positive=True, integer=True))", "2*s27"},
		{"2*s27 + 1", "2*s27 + 1"},
		{"s27**2", "s27**2"},
		{"(s0 + 1)//2", "(s0 + 1)//2"},
		{"-s0 + 3", "3 - s0"},
		{"Max(1, s0)", "max(1, s0)"},
		{"Mul(Rational(1, 2), Symbol('s0'))", "s0//2"},
		{"Add(Mul(Rational(1, 2), Symbol('s0')), Mul(Rational(1, 2), Symbol('s0')))", "s0"},
		{"Mul(s0, s1, Pow(s1, Integer(-1)))", "s0"},
		{"Mul(s0, Pow(s1, Integer(-2)))", "s0//s1**2"},
		{"Min(s0, int_oo)", "s0"},
		{"Max(s0, -int_oo)", "s0"},
		{"s0 <= int_oo", "true"},
		{"-oo < s0", "true"},
		{"s0 < oo", "true"},
		{"3*(Mod(u0, 4))/2", "(3*(u0 % 4))//2"},
		{"~(Eq(u0, 2) & (u0 < s0))", "not (u0 == 2 and s0 >= u0 + 1)"},
		{"1 < s0 <= 7", "s0 <= 7 and s0 >= 2"},
		{"s0/2 < s1", "s0 <= 2*s1 - 1"},
		{"Float('0.5', precision=53)", "0.5"},
		{"Integer(-9223372036854775808)", "-9223372036854775808"},
		{"FloorDiv(s0, Mul(Integer(-1), s1))", "(-s0)//s1"},
		{"Symbol('zuf0', real=True)*2.0", "zuf0*2.0"},
		{"(s0)", "s0"},
		{"Add(Integer(9223372036854775807), Integer(1))", "1 + 9223372036854775807"},
	} {
		e, err := ParseSympy(tt.src, SympyOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := e.String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.src, got, tt.want)
		}
	}
}

func TestParseSympyRefuses(t *testing.T) {
	deep := strings.Repeat("Add(Integer(1), ", 1000) + "s0" + strings.Repeat(")", 1000)
	for _, tt := range []struct{ src, msg string }{
		{"Mul(Symbol('s0', integer=True), Pow(Integer(0), Integer(-1)))", "division by zero"},
		{"s0/0", "division by zero"},
		{"s0//0", "division by zero"},
		{"FloorDiv(s0, Integer(0))", "division by zero"},
		{"Mod(s0, Integer(0))", "by zero"},
		{"IntTrueDiv(s0, 0)", "division by zero"},
		{"Rational(1, 0)", "division by zero"},
		{deep, "nested more than"},
		{strings.Repeat("(", 30000), "nested more than"},
		{strings.Repeat("-", 30000) + "1", "nested more than"},
		{strings.Repeat("not ", 10000) + "a", "nested more than"},
		{strings.Repeat("2**", 10000) + "2", "nested more than"},
		{strings.Repeat("s0+", 40000) + "1", "longer than"},
		{"", "an operand"},
		{"s0 s1", "the end"},
		{"__import__('os').system('id')", "unknown function"},
		{"Symbol('s0; import os')", "bad symbol name"},
		{"Symbol(1)", "without a string"},
		{"Symbol('s0', positive=[])", "a value"},
		{"L['x'].size()[0]", "where a symbol should stand"},
		{"Integer(99999999999999999999)", "does not fit"},
		{"oo", "infinity"},
		{"oo - oo", "infinities"},
		{"nan", "nan"},
		{"Add(s0, true)", "bool"},
		{"And(s0, true)", "bool"},
		{"Piecewise((1, u0 > 0))", "not true"},
		{"Piecewise(1)", "pairs"},
		{"(1, 2)", "list or string"},
		{"'s0'", "an operand"},
		{"Pow(2)", "1 arguments"},
		{"s0 +", "ends where"},
		{"s0 $ 2", "unexpected character"},
		{"1 < 2 < (3", "ends where"},
		{"LShift(s0, -1)", "negative shift"},
		{"9**99999999999 > 0 and x[", "an index"},
	} {
		e, err := ParseSympy(tt.src, SympyOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.msg) {
			t.Errorf("%.60s: got %v, %v; want an error with %q", tt.src, e, err, tt.msg)
		}
		var se *SyntaxError
		if err != nil && !errors.As(err, &se) {
			t.Errorf("%.60s: error is a %T", tt.src, err)
		}
	}
}

func TestParseSympyOptions(t *testing.T) {
	var asked []string
	e, err := ParseSympy("Add(Symbol('s3', positive=True, integer=True), s4)*L['a'][2].size()[0] >= L['b'].x", SympyOptions{
		Symbol: func(name string, assume []string) (Expr, error) {
			asked = append(asked, name+":"+strings.Join(assume, ","))
			return Symbol("x" + name), nil
		},
		Source: func(text string) (Expr, error) {
			asked = append(asked, text)
			return Const(3), nil
		},
	})
	if err != nil || e.String() != "xs3 + xs4 >= 1" {
		t.Errorf("got %v, %v", e, err)
	}
	want := "s3:positive,integer s4: L['a'][2].size()[0] L['b'].x"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

func FuzzParseSympy(f *testing.F) {
	for _, s := range []string{
		"Mul(Symbol('s0', integer=True), Pow(Integer(0), Integer(-1)))", "2*s27 + 1", "(s0 + 1)//2",
		"Piecewise(ExprCondPair(Integer(1), Equality(Symbol('u0'), Integer(2))), ExprCondPair(Integer(0), true))",
		"Max(Integer(1), Add(FloorDiv(Add(Symbol('s63'), Integer(-1)), Integer(2)), Integer(1)))",
		"((s0 % 4)**2//3)/2 <= -oo", "~(a & b | c)", "L['x'].size()[0] != 1", "Float('0.5', precision=53)**0.5",
		"PythonMod(s0*6 + 9, -15) >> 2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseSympy(s, SympyOptions{Source: func(string) (Expr, error) { return Symbol("src"), nil }})
		if err != nil {
			return
		}
		back, err := Parse(e.String())
		if err != nil || !back.Equal(e) {
			t.Errorf("%q: %s is read back as %s, %v", s, e, back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"s0 + 1", "2*s0*s1 - 4", "(s0 + 7)//8", "s0 % 4", "max(1, s0)", "s0 >= 2 and not s1 == s2",
		"where(s0 <= 4, s0, 4)", "float(s0) / 2.0", "-9223372036854775808", "2**100 * s0", "1 + 9223372036854775807",
		"round(zf0*1e+20, 2)", "bitand(s0, -4)", "dense(s0, s1, s1, 1)", "-2**s0", "(a + b)**9 % (c - a)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		back, err := Parse(e.String())
		if err != nil || !back.Equal(e) {
			t.Errorf("%q: %s is read back as %s, %v", s, e, back, err)
		}
	})
}
