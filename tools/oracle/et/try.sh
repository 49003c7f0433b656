#!/usr/bin/env bash
# Builds the ExecuTorch runner where that is possible and not yet done; says why not otherwise. Never fails.
here=$(cd "$(dirname "$0")" && pwd)
runner=${LATHE_ET_RUNNER:-${LATHE_RUNTIME:-${XDG_CACHE_HOME:-$HOME/.cache}/lathe/executorch-1.5.1}/runner}
[ -x "$runner" ] && exit 0
for tool in python3 "${CXX:-g++}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "There is no $tool here: what needs the ExecuTorch runtime is skipped."
    exit 0
  fi
done
echo "Building the ExecuTorch runner, once …"
"$here/setup.sh" >/dev/null || echo "The ExecuTorch runner could not be built: what needs it is skipped."
exit 0
