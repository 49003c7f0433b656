#!/usr/bin/env bash
# Licences of all modules in the build, and known vulnerabilities in what it calls. The database of vulnerabilities is made
# from the module golang.org/x/vulndb, so that the module proxy is all that is asked.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./tools/audit licences
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
osv=$(cd "$tmp" && GOFLAGS=-mod=mod go mod download -json golang.org/x/vulndb@latest | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
go run ./tools/audit vulndb "$osv/data/osv" "$tmp/db"
go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -format json -db "file://$tmp/db" ./... >"$tmp/found.json"
go run ./tools/audit findings <"$tmp/found.json"
