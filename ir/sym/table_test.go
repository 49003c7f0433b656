package sym

import (
	"math"
	"strings"
	"testing"
)

func mustParse(t *testing.T, s string) Expr {
	t.Helper()
	e, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newTable(t *testing.T) *Table {
	t.Helper()
	tab := &Table{}
	for _, s := range []Sym{
		{Name: "s10", Range: Range{2, 32}, Hint: 7, HasHint: true},
		{Name: "s2", Range: Range{2, math.MaxInt64}},
		{Name: "u0", Range: NoRange},
	} {
		if err := tab.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

func TestTable(t *testing.T) {
	tab := newTable(t)
	if tab.Len() != 3 || tab.All()[0].Name != "s10" {
		t.Errorf("symbols are %v", tab.All())
	}
	if s, ok := tab.Get("s10"); !ok || s.Hint != 7 {
		t.Errorf("s10 is %v, %v", s, ok)
	}
	if _, ok := tab.Get("s11"); ok {
		t.Error("s11 is there")
	}
	if err := tab.Add(Sym{Name: "x", Range: Range{64, 2}}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty range gives %v", err)
	}
	if err := tab.Add(Sym{Name: "1x"}); err == nil {
		t.Error("a bad name is accepted")
	}
	if v, err := Eval(mustParse(t, "2*s10 + 1"), tab); v != 15 || err != nil {
		t.Errorf("at the hints: %d, %v", v, err)
	}
	for _, tt := range []struct {
		e    string
		want Range
	}{
		{"2*s10 + 1", Range{5, 65}},
		{"s10*s2", Range{4, math.MaxInt64}},
		{"(s10 + 7)//8", Range{1, 4}},
		{"-s2", Range{math.MinInt64, -2}},
		{"max(1, s10 - 20)", Range{1, 12}},
		{"u0 % 7", Range{0, 6}},
		{"abs(u0)", Range{0, math.MaxInt64}},
		{"where(s10 > 1, s10, u0)", Range{2, 32}},
		{"2**s10", Range{4, 1 << 32}},
		{"s10 <= 32", Range{1, 1}},
	} {
		if got := tab.Range(mustParse(t, tt.e)); got != tt.want {
			t.Errorf("%s is in %v, want %v", tt.e, got, tt.want)
		}
	}
	for _, tt := range []struct {
		p            string
		value, known bool
	}{
		{"s10 <= 32", true, true},
		{"s10 <= 31", false, false},
		{"s10 == 1", false, true},
		{"s10*s2 >= s2", false, false},
		{"s10 + s2 > s2", true, true},
		{"s10 >= 2 and s2 != 0", true, true},
		{"s2 == 5 or s10 > 0", true, true},
		{"u0 % 4 < 4", true, true},
	} {
		if v, known := tab.Prove(mustParse(t, tt.p)); v != tt.value || known != tt.known {
			t.Errorf("%s: %v, %v", tt.p, v, known)
		}
	}
	if v, known := tab.ProveEq(mustParse(t, "s2*3//3"), Symbol("s2")); !v || !known {
		t.Error("s2*3//3 is not proved equal to s2")
	}
	if got := tab.Simplify(mustParse(t, "max(1, s10) + s10 % 64 + min(s2, s10, 40)")).String(); got != "2*s10 + min(s2, s10)" {
		t.Errorf("simplified to %s", got)
	}
	c := tab.Clone()
	if err := c.Constrain(Symbol("s10"), Range{4, 8}); err != nil {
		t.Fatal(err)
	}
	if tab.SymRange("s10") != (Range{2, 32}) || c.SymRange("s10") != (Range{4, 8}) {
		t.Error("a clone shares its symbols")
	}
}

func TestConstrain(t *testing.T) {
	tab := newTable(t)
	for _, tt := range []struct {
		e    string
		r    Range
		name string
		want Range
	}{
		{"2*s10", Range{7, 64}, "s10", Range{4, 32}},
		{"s10 + 1", Range{3, 21}, "s10", Range{4, 20}},
		{"3 - 2*s10", Range{-30, math.MaxInt64}, "s10", Range{4, 16}},
		{"u9", Range{0, 6}, "u9", Range{0, 6}},
	} {
		if err := tab.Constrain(mustParse(t, tt.e), tt.r); err != nil {
			t.Errorf("%s: %v", tt.e, err)
		}
		if got := tab.SymRange(tt.name); got != tt.want {
			t.Errorf("with %s in %v, %s is in %v, want %v", tt.e, tt.r, tt.name, got, tt.want)
		}
	}
	if err := tab.Constrain(Symbol("s10"), Range{50, 60}); err == nil {
		t.Error("an impossible range is accepted")
	}
	if err := tab.Assume(mustParse(t, "s2 + u0 <= 32 and u0 >= 0")); err != nil {
		t.Fatal(err)
	}
	if got := tab.Range(mustParse(t, "s2 + u0 + 1")); got != (Range{3, 33}) {
		t.Errorf("s2 + u0 + 1 is in %v", got)
	}
	if v, known := tab.Prove(mustParse(t, "u0 + s2 < 33")); !v || !known {
		t.Error("an assumption is not used")
	}
	if err := tab.Assume(mustParse(t, "s2 + u0 >= 33")); err == nil {
		t.Error("a contradiction is accepted")
	}
}

func TestSolveLinear(t *testing.T) {
	for _, tt := range []struct {
		e    string
		a, b int64
		ok   bool
	}{
		{"3*s0 - 4", 3, -4, true},
		{"7", 0, 7, true},
		{"s0", 1, 0, true},
		{"s0**2", 0, 0, false},
		{"s0 + s1", 0, 0, false},
		{"s0//2", 0, 0, false},
		{"s0 == 1", 0, 0, false},
	} {
		a, b, ok := SolveLinear(mustParse(t, tt.e), "s0")
		if ok != tt.ok || ok && (a != tt.a || b != tt.b) {
			t.Errorf("%s: %d, %d, %v", tt.e, a, b, ok)
		}
	}
	if a, b := CoeffOf(mustParse(t, "3*s0 + s0*s1 - 2*(s1//2)"), Symbol("s0")); a != 3 || b.String() != "s0*s1 - 2*(s1//2)" {
		t.Errorf("coefficient %d, rest %s", a, b)
	}
}

func TestSubstAndSymbols(t *testing.T) {
	e := mustParse(t, "max(s0*s10, (s2 + 1)//2) + s0")
	if got := strings.Join(Symbols(e), " "); got != "s0 s2 s10" {
		t.Errorf("symbols are %s", got)
	}
	got := Subst(e, map[string]Expr{"s0": Const(1), "s10": mustParse(t, "(s2 + 1)//2")})
	if got.String() != "(s2 + 1)//2 + 1" {
		t.Errorf("got %s", got)
	}
}

func TestEvalErrors(t *testing.T) {
	env := MapEnv{"s0": 0, "s1": math.MaxInt64}
	for _, tt := range []struct {
		e   string
		err error
	}{
		{"1//s0", ErrDivideByZero},
		{"1 % s0", ErrDivideByZero},
		{"s1 + 1", ErrOverflow},
		{"s1*s1", ErrOverflow},
		{"s1**s1", ErrOverflow},
		{"(s1*s1)**60", ErrOverflow},
		{"s9", ErrUnknown},
	} {
		if v, err := Eval(mustParse(t, tt.e), env); err == nil || !strings.Contains(err.Error(), tt.err.Error()) {
			t.Errorf("%s: got %d, %v", tt.e, v, err)
		}
	}
	// Only the result has to fit.
	if v, err := Eval(mustParse(t, "s1*s1 - s1*(s1 - 1)"), env); v != math.MaxInt64 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	if _, err := EvalFloat(mustParse(t, "2.0 / s0"), env); err == nil {
		t.Error("float division by zero has a value")
	}
	if _, err := Eval(mustParse(t, "0.5"), env); err == nil {
		t.Error("a float is an integer")
	}
}

func TestInvalid(t *testing.T) {
	b := Ge(Symbol("s0"), Const(2))
	wide := Symbol("s0")
	for range 40 { // a product of sums that doubles with each step
		wide = Add(Mul(wide, Add(wide, Symbol("s1"))), Max(wide, Symbol("s2")))
	}
	for name, e := range map[string]Expr{
		"bool in a sum": Add(b, Const(1)), "bool in max": Max(b, b), "number in and": And(Const(1)),
		"bad name": Symbol("a b"), "reserved name": Symbol("true"), "too large": wide,
		"float in //": FloorDiv(ConstFloat(1), Const(2)),
	} {
		if e.Err() == nil || e.Kind() != Invalid {
			t.Errorf("%s: %.80s has no error", name, e)
		}
		if _, err := Eval(Add(e, Const(1)), MapEnv{}); err == nil {
			t.Errorf("%s: has a value", name)
		}
		if _, err := Parse(e.String()); err == nil {
			t.Errorf("%s: is read back", name)
		}
	}
}

func TestConstantsDoNotAllocate(t *testing.T) {
	a, b := Const(12), Const(5)
	s := Symbol("s0")
	var sink bool
	if n := testing.AllocsPerRun(100, func() {
		x := Add(Mul(a, b), Sub(a, b))
		x = Mod(FloorDiv(x, b), a)
		sink = x.Equal(a) || s.Equal(x) || otherS0.Equal(s)
	}); n != 0 {
		t.Errorf("%v allocations (%v)", n, sink)
	}
}

var otherS0 = Symbol("s0")
