package sym

import "testing"

func TestString(t *testing.T) {
	s0, s1, u3 := Symbol("s0"), Symbol("s1"), Symbol("u3")
	c := Const
	for _, tt := range []struct {
		e    Expr
		want string
	}{
		{Add(s0, c(1)), "s0 + 1"},
		{Mul(c(2), s0), "2*s0"},
		{Sub(Mul(s0, s1), c(4)), "s0*s1 - 4"},
		{FloorDiv(Add(s0, c(7)), c(8)), "(s0 + 7)//8"},
		{Mod(s0, c(4)), "s0 % 4"},
		{Max(c(1), s0), "max(1, s0)"},
		{Ge(s0, c(2)), "s0 >= 2"},
		{Lt(s0, c(2)), "s0 <= 1"},
		{Sub(c(15), s0), "15 - s0"},
		{FloorDiv(Mul(s0, c(6)), c(6)), "s0"},
		{Mod(Mul(s0, c(6)), c(6)), "0"},
		{Add(FloorDiv(Sub(s0, c(1)), c(2)), c(1)), "(s0 + 1)//2"},
		{CeilDiv(s0, c(2)), "(s0 + 1)//2"},
		{FloorDiv(FloorDiv(s0, c(2)), c(3)), "s0//6"},
		{Mul(c(2), FloorDiv(s0, c(8))), "2*(s0//8)"},
		{Sub(s1, FloorDiv(s0, c(8))), "s1 - s0//8"},
		{Neg(FloorDiv(s0, s1)), "-(s0//s1)"},
		{Pow(s0, c(2)), "s0**2"},
		{Mul(Add(s0, c(1)), Sub(s0, c(1))), "s0**2 - 1"},
		{FloorDiv(Mul(Add(s0, u3), Add(s1, u3)), Add(s1, u3)), "s0 + u3"},
		{TrueDiv(s0, c(2)), "s0 / 2"},
		{ConstFloat(2), "2.0"},
		{Add(c(1<<63-1), c(1)), "1 + 9223372036854775807"},
		{Add(Symbol("s10"), Symbol("s2")), "s2 + s10"},
		{Expr{}, "0"},
	} {
		if got := tt.e.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
