# The usual entry points. Everything but `runtime` needs only Go.

.PHONY: build test runtime

build:
	go build -o bin/lathe ./cmd/lathe

test:
	go test ./...

# The stock ExecuTorch runtime as a program of its own (Python 3, g++ and pip's index): what compiled programs are run in.
runtime:
	tools/oracle/et/setup.sh
