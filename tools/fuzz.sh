#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time.
set -euo pipefail
for file in $(git ls-files '*_test.go' | xargs grep -l '^func Fuzz'); do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}" | tail -1
  done
done
