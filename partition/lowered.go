package partition

import "io"

// Blob is a run of bytes that can write itself, any number of times, the same bytes each time.
type Blob interface {
	Size() int64
	WriteTo(w io.Writer) (int64, error)
}

// Lowered is what a backend makes of a region. It hangs as Attr on the node that stands for the region: the node's
// arguments are the delegate's inputs, its results the delegate's outputs, in order.
type Lowered struct {
	// ID is the name under which the runtime knows the backend, "XnnpackBackend" for one.
	ID      string
	Payload Blob
	Specs   []Spec
	// Named is data that the backend asks for by key when it loads; equal keys of several regions must hold equal bytes.
	Named []Named
}

// Spec is an option handed to the backend together with its payload.
type Spec struct {
	Key   string
	Value []byte
}

// Named is data under a key.
type Named struct {
	Key  string
	Data Blob
	// Align is in bytes, 0 for what the file format gives.
	Align int
}
