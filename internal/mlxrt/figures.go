package mlxrt

import (
	"errors"

	"github.com/lathe-ml/lathe/codegen/mlxpayload"
	"github.com/lathe-ml/lathe/codegen/pte"
)

// Figures are what the delegate has to do and to hold for a program, all methods together.
type Figures struct {
	Regions int
	// Nodes are the instructions of all chains, counted once wherever they stand.
	Nodes int
	// Temps are slots of tensors that live in a call alone, Values those of integers.
	Temps, Values int
}

// Measure reads the figures of the program at path. It refuses programs with other delegates.
func Measure(path string) (Figures, error) {
	var m Figures
	f, err := pte.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close() //nolint:errcheck // only read
	for _, plan := range f.Plans {
		for _, d := range plan.Delegates {
			if d.ID != delegateID {
				return m, errors.New("a delegate called " + d.ID)
			}
			b, err := blobBytes(d.Payload)
			if err != nil {
				return m, err
			}
			p, err := mlxpayload.Unmarshal(b)
			if err != nil {
				return m, err
			}
			m.Regions++
			m.Temps += int(p.Graph.NumTempTensors)
			m.Values += int(p.Graph.NumValues)
			for _, c := range p.Graph.InstructionChains {
				m.Nodes += len(c.Instructions)
			}
		}
	}
	return m, nil
}
