package pickle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-ml/lathe/ops"
)

// values is one list of values in the protocols 2, 4 and 5, as Python's pickle writes them; bytes from protocol 3 on.
var values = map[int]string{
	2: "\x80\x02]q\x00(N\x88\x89K\x00K\xffM\x00\x01J\x00\x00\x01\x00J\xff\xff\xff\xffJ\x00\x00\x00\x80\x8a" +
		"\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00@G?" +
		"\xf8\x00\x00\x00\x00\x00\x00G\xff\xf0\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x01)K\x01" +
		"\x85q\x02K\x01K\x02\x86q\x03K\x01K\x02K\x03\x87q\x04(K\x01K\x02K\x03K\x04tq\x05}q\x06(X\x01\x00\x00" +
		"\x00aq\x07K\x01K\x02X\x01\x00\x00\x00bq\x08u]q\x09]q\x0aaX\x03\x00\x00\x00zzzq\x0bh\x06ccollections" +
		"\x0aOrderedDict\x0aq\x0c)Rq\x0dX\x01\x00\x00\x00kq\x0eK\x07se.",
	4: "\x80\x04\x95\xb7\x00\x00\x00\x00\x00\x00\x00]\x94(N\x88\x89K\x00K\xffM\x00\x01J\x00\x00\x01\x00J\xff" +
		"\xff\xff\xffJ\x00\x00\x00\x80\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a" +
		"\x08\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00G\xff\xf0\x00\x00\x00\x00\x00\x00\x8c" +
		"\x02\xc3\xa9\x94)K\x01\x85\x94K\x01K\x02\x86\x94K\x01K\x02K\x03\x87\x94(K\x01K\x02K\x03K\x04t\x94}" +
		"\x94(\x8c\x01a\x94K\x01K\x02\x8c\x01b\x94u]\x94]\x94a\x8c\x03zzz\x94h\x06\x8c\x0bcollections\x94\x8c" +
		"\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01k\x94K\x07sC\x02ab\x94e.",
	5: "\x80\x05\x95\xb7\x00\x00\x00\x00\x00\x00\x00]\x94(N\x88\x89K\x00K\xffM\x00\x01J\x00\x00\x01\x00J\xff" +
		"\xff\xff\xffJ\x00\x00\x00\x80\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x8a" +
		"\x08\x00\x00\x00\x00\x00\x00\x00@G?\xf8\x00\x00\x00\x00\x00\x00G\xff\xf0\x00\x00\x00\x00\x00\x00\x8c" +
		"\x02\xc3\xa9\x94)K\x01\x85\x94K\x01K\x02\x86\x94K\x01K\x02K\x03\x87\x94(K\x01K\x02K\x03K\x04t\x94}" +
		"\x94(\x8c\x01a\x94K\x01K\x02\x8c\x01b\x94u]\x94]\x94a\x8c\x03zzz\x94h\x06\x8c\x0bcollections\x94\x8c" +
		"\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01k\x94K\x07sC\x02ab\x94e.",
}

// show prints a value in one line.
func show(v any) string {
	list := func(items []any) string {
		s := make([]string, len(items))
		for i, e := range items {
			s[i] = show(e)
		}
		return strings.Join(s, " ")
	}
	switch v := v.(type) {
	case Tuple:
		return "(" + list(v) + ")"
	case *List:
		return "[" + list(v.Items) + "]"
	case *Dict:
		s := make([]string, len(v.Keys))
		for i := range v.Keys {
			s[i] = show(v.Keys[i]) + ":" + show(v.Values[i])
		}
		return "{" + strings.Join(s, " ") + "}"
	case *Object:
		return v.Class.String() + show(v.Args) + show(&v.Dict)
	case string:
		return fmt.Sprintf("%q", v)
	case []byte:
		return fmt.Sprintf("b%q", v)
	}
	return fmt.Sprint(v)
}

func all(Global) bool { return true }

func TestValues(t *testing.T) {
	const want = `[<nil> true false 0 255 256 65536 -1 -2147483648 1099511627776 -1099511627776 4611686018427387904 1.5 -Inf "é" ` +
		`() (1) (1 2) (1 2 3) (1 2 3 4) {"a":1 2:"b"} [[]] "zzz" {"a":1 2:"b"} collections.OrderedDict(){"k":7}`
	for p, b := range values {
		v, err := Load([]byte(b), all)
		if err != nil {
			t.Errorf("protocol %d: %v", p, err)
			continue
		}
		w := want + "]"
		if p > 2 {
			w = want + ` b"ab"]`
		}
		if got := show(v); got != w {
			t.Errorf("protocol %d: got %s, want %s", p, got, w)
		}
	}
}

func TestRefused(t *testing.T) {
	for b, msg := range map[string]string{
		"": "ends within", "\x80\x02": "ends within", "\x80\x09N.": "protocol 9", "N": "ends within", ".": "takes more",
		"(.": "takes more", "t.": "was not opened", "R.": "takes more", "NNR.": "arguments are", "N)R.": "calls a", "Nb.": "takes more",
		"NNb.": "sets the state", "NNa.": "appends to", "}(K\x01u.": "key without", "h\x05.": "not remembered",
		"X\xff\xff\xff\xff.": "ends within", "\x8d\xff\xff\xff\xff\xff\xff\xff\xff": "ends within", "X\x01\x00\x00\x00\xff.": "UTF-8",
		"\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01.": "integer of 9 bytes", "cos\nsystem\n.": `"os.system"`,
		"\x8c\x02os\x8c\x06system\x93.": `"os.system"`, "NN\x93.": "no string", "ios\nsystem\n.": "instruction 0x69",
		"\x82\x01.": "instruction 0x82", "\x95\xff\xff\xff\xff\xff\xff\xff\xff.": "frame", "N)}\x92.": "calls a", "N)N\x92.": "no dictionary",
	} {
		v, err := Load([]byte(b), func(Global) bool { return false })
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, msg) {
			t.Errorf("%q: got %v and %v, want %s", b, v, err, msg)
		}
	}
}

func TestAllowWeights(t *testing.T) {
	for name, want := range map[string]bool{
		"torch._utils._rebuild_tensor_v2": true, "torch.FloatStorage": true, "torch.int4": true, "torch.bfloat16": true,
		"torchao.quantization.Int8Tensor": true, "executorch.extension.llm.export.int4.ExportableInt4Tensor": true,
		"os.system": false, "builtins.eval": false, "__builtin__.getattr": false, "torch.load": false, "torch.f32": false,
		"torch.hub.load": false, "torchaoX.evil": false, "executorch.exir.x": false, "torch.int99": false,
	} {
		i := strings.LastIndexByte(name, '.')
		if got := AllowWeights(Global{name[:i], name[i+1:]}); got != want {
			t.Errorf("%s allowed: %v", name, got)
		}
	}
	if AllowWeights(Global{"torchao.utils", "os.system"}) {
		t.Error("a dotted name reaches through a module")
	}
}

func obj(name string, args ...any) *Object {
	i := strings.LastIndexByte(name, '.')
	return &Object{Class: Global{name[:i], name[i+1:]}, Args: args}
}

func storage(class, key string) Persistent {
	return Persistent{Tuple{"storage", Global{"torch", class}, key, "cpu", int64(8)}}
}

func TestTorch(t *testing.T) {
	inner := obj("torch._utils._rebuild_tensor_v3", storage("UntypedStorage", "4"), int64(1), Tuple{int64(2), int64(3)}, Tuple{int64(3), int64(1)},
		false, nil, Global{"torch", "uint32"})
	state := &Dict{Keys: []any{"qdata", "target_dtype", "block"}, Values: []any{inner, Global{"torch", "int4"}, &List{[]any{int64(1), int64(32)}}}}
	sub := obj("torch._tensor._rebuild_from_type_v2", Global{"torch._utils", "_rebuild_wrapper_subclass"}, Global{"torchao.q", "T"},
		Tuple{Global{"torchao.q", "T"}, Global{"torch", "float32"}, Tuple{int64(2), int64(6)}, Tuple{int64(6), int64(1)}}, state)
	v, err := Torch(obj("torch._utils._rebuild_parameter", sub, true, nil))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := v.(*Subclass)
	if !ok || s.Class != "torchao.q.T" || s.Base() != "T" || s.DType != ops.Float32 || fmt.Sprint(s.Sizes) != "[2 6]" {
		t.Fatalf("got %+v", v)
	}
	q, _ := s.Attr("qdata")
	if q, ok := q.(*Tensor); !ok || q.DType != ops.Uint32 || q.Key != "4" || q.Offset != 1 || fmt.Sprint(q.Sizes, q.Strides) != "[2 3] [3 1]" {
		t.Errorf("qdata is %+v", q)
	}
	if d, _ := s.Attr("target_dtype"); d != (DType{Name: "int4"}) {
		t.Errorf("target_dtype is %v", d)
	}
	if b, _ := s.Attr("block"); fmt.Sprint(b) != "[1 32]" {
		t.Errorf("block is %v", b)
	}
}

func TestTorchRefuses(t *testing.T) {
	sizes := Tuple{int64(2)}
	for what, v := range map[string]any{
		"storage":       obj("torch._utils._rebuild_tensor_v2", nil, int64(0), sizes, sizes, false, nil),
		"storage class": obj("torch._utils._rebuild_tensor_v2", storage("NoStorage", "0"), int64(0), sizes, sizes, false, nil),
		"sizes":         obj("torch._utils._rebuild_tensor_v2", storage("FloatStorage", "0"), int64(0), Tuple{int64(-2)}, sizes, false, nil),
		"strides":       obj("torch._utils._rebuild_tensor_v2", storage("FloatStorage", "0"), int64(0), sizes, Tuple{}, false, nil),
		"element type":  obj("torch._utils._rebuild_tensor_v3", storage("UntypedStorage", "0"), int64(0), sizes, sizes, false, nil, Global{"torch", "int4"}),
		"arguments":     obj("torch._utils._rebuild_tensor_v2"),
		"another form":  obj("torch._tensor._rebuild_from_type_v2", nil),
		"state":         obj("torch._tensor._rebuild_from_type_v2", Global{"torch._utils", "_rebuild_wrapper_subclass"}, nil, Tuple{Global{"a", "B"}, Global{"torch", "float32"}, sizes, sizes}, nil),
	} {
		if got, err := Torch(v); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v and %v", what, got, err)
		}
	}
	// Values that refer to one another without end, and many by few.
	l := &List{}
	l.Items = []any{l}
	if _, err := Torch(l); err == nil {
		t.Error("a list that holds itself is accepted")
	}
	var v any = Tuple{}
	for range 31 {
		v = Tuple{v, v, v, v}
	}
	if _, err := Torch(v); err == nil {
		t.Error("4^31 values are accepted")
	}
}

func FuzzLoad(f *testing.F) {
	for _, b := range values {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Load(b, all)
		if err == nil {
			_, _ = Torch(v)
		}
	})
}
