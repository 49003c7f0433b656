package passes_test

import (
	"testing"

	"github.com/lathe-ml/lathe/golden"
)

func TestGolden(t *testing.T) { golden.Run(t, "testdata", golden.Config{}) }
