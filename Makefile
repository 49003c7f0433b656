# The usual entry points. Only Go is needed for `build`, `test` and `demo`; with Python 3 and a C++ compiler the last two
# use the stock ExecuTorch runtime, too, which they build on first use.

.PHONY: build demo test runtime mlx cases fuzz bench runbench

build:
	CGO_ENABLED=0 go build -o bin/lathe ./cmd/lathe

# Compiles a small language model and runs it in the reference engine and in the ExecuTorch runtime.
demo: build
	@tools/oracle/et/try.sh
	@tools/demo.sh

test:
	@tools/oracle/et/try.sh
	go run ./tools/testrun $(if $(CI),-strict -allow 'LATHE_[A-Z_]+ is not set|does not name the folder|no cases') ./...

# The stock ExecuTorch runtime as a program of its own (Python 3, g++ and pip's index): what compiled programs are run in.
runtime:
	tools/oracle/et/setup.sh

# MLX's own Python package for the CPU: what the payloads of the MLX backend are run with.
mlx:
	tools/oracle/mlx/setup.sh

# Compiles and runs all handed cases and prints a line of counts per backend. LATHE_CASE_ARCHIVES is the folder they came in.
LATHE_CASE_ARCHIVES ?= ../shared/cases
cases:
	go run ./tools/casecheck -archives $(LATHE_CASE_ARCHIVES)

# Every fuzz target for a while.
FUZZTIME ?= 30s
fuzz:
	tools/fuzz.sh $(FUZZTIME)

# Times compiles against a copy of the archive and, with LATHE_OFFICIAL_PYTHON, against the official pipeline in the same
# run. BENCH_BIG is an archive of 1.2 GB, made by tools/fixtures where it is not there.
bench:
	go run ./bench $(if $(BENCH_BIG),-big $(BENCH_BIG))

# Times the programs against those of the official pipeline for the same models, in the same runtime.
runbench:
	go run ./tools/runbench
