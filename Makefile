# The usual entry points. Everything but `runtime` and `mlx` needs only Go.

.PHONY: build test runtime mlx cases

build:
	go build -o bin/lathe ./cmd/lathe

test:
	go test ./...

# The stock ExecuTorch runtime as a program of its own (Python 3, g++ and pip's index): what compiled programs are run in.
runtime:
	tools/oracle/et/setup.sh

# MLX's own Python package for the CPU: what the payloads of the MLX backend are run with.
mlx:
	tools/oracle/mlx/setup.sh

# Compiles and runs all handed cases and prints a line of counts per backend. LATHE_CASE_ARCHIVES is the folder they came in.
cases:
	go run ./tools/casecheck
