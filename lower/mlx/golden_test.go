package mlx

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/lathe-ml/lathe/codegen/fb"
	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/lower/lowertest"
	"github.com/lathe-ml/lathe/partition"
)

func TestGolden(t *testing.T) {
	lowertest.Golden(t, Backend{}, func(t *testing.T, out *bytes.Buffer, low *partition.Lowered) {
		for _, n := range low.Named {
			fmt.Fprintf(out, "; %d bytes %s\n", n.Data.Size(), n.Key)
		}
		var b bytes.Buffer
		if _, err := low.Payload.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		p, err := mlxpayload.Unmarshal(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		out.Write(fb.AppendText(nil, p.Graph))
	})
}
