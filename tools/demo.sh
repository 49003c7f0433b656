#!/usr/bin/env bash
# Compiles the bundled language model, runs it and compares with what PyTorch gave when it was exported.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
say() { printf '\n$ %s\n' "$*"; "$@"; }

say bin/lathe compile testdata/llama/model.pt2 -o "$out/llama.pte" --dim s44=1..4 --dim s70=1..16 --dim s36=1..64
ls -l "$out/llama.pte"
say bin/lathe run testdata/llama/model.pt2 --engine reference --case testdata/llama
if [ -x "${LATHE_ET_RUNNER:-${LATHE_RUNTIME:-${XDG_CACHE_HOME:-$HOME/.cache}/lathe/executorch-1.5.1}/runner}" ]; then
  say bin/lathe run "$out/llama.pte" --engine executorch --case testdata/llama
  printf '\nThe reference engine and the ExecuTorch runtime both agree with PyTorch.\n'
else
  printf '\nThe reference engine agrees with PyTorch. The ExecuTorch runtime was skipped (it needs Python 3 and g++).\n'
fi
