#!/usr/bin/env bash
# Builds the ExecuTorch runner: installs the wheel into the project's own virtual environment, compiles runner.cpp against
# it, and puts the program and the libraries it needs side by side in the user's cache, where Lathe looks for them.
#
#   setup.sh [DIR]      default DIR: $LATHE_RUNTIME or <user cache>/lathe/executorch-1.5.1
#
# Needs Python 3 with venv, g++ (C++17) and pip's index. EXECUTORCH_WHEEL_DIR names an unpacked wheel to use instead of pip.
set -euo pipefail
version=1.5.1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${1:-${LATHE_RUNTIME:-${XDG_CACHE_HOME:-$HOME/.cache}/lathe/executorch-$version}}

wheel=${EXECUTORCH_WHEEL_DIR:-}
if [ -z "$wheel" ]; then
  venv=$root/.cache/venv
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  if ! "$venv/bin/python" -m pip show -q executorch 2>/dev/null; then
    "$venv/bin/python" -m pip install -q --no-deps "executorch==$version"
  fi
  wheel=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/executorch
fi
[ -f "$wheel/lib/libexecutorch.so" ] || { echo "setup: no libexecutorch.so in $wheel/lib" >&2; exit 1; }

mkdir -p "$out/lib"
libs=(executorch executorch_kernels_optimized executorch_kernels_quantized executorch_backend_xnnpack executorch_threadpool)
for l in "${libs[@]}"; do cp -f "$wheel/lib/lib$l.so" "$out/lib/"; done
# Kernels and backends register themselves when loaded: keep the libraries although nothing refers to them by name.
"${CXX:-g++}" -std=c++17 -O2 -Wall -Wextra -Wno-unused-parameter -Wno-deprecated-declarations \
  -DC10_USING_CUSTOM_GENERATED_MACROS \
  -isystem "$wheel/include" -isystem "$wheel/include/executorch/runtime/core/portable_type/c10" \
  "$here/runner.cpp" -o "$out/runner.new" \
  -L"$out/lib" -Wl,--no-as-needed $(printf -- '-l%s ' "${libs[@]}") -Wl,-rpath,'$ORIGIN/lib' -lpthread
mv -f "$out/runner.new" "$out/runner"
echo "$out/runner"
