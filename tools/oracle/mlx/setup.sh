#!/usr/bin/env bash
# Installs MLX for the CPU into the project's own virtual environment and leaves a wrapper of its Python in the user's cache,
# where internal/mlxrt looks for it.
#
#   setup.sh [FILE]      default FILE: <user cache>/lathe/mlx-python
set -euo pipefail
version=0.32.4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lathe/mlx-python}

venv=$root/.cache/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import mlx.core' 2>/dev/null ||
  "$venv/bin/python" -m pip install -q "mlx==$version" "mlx-cpu==$version" numpy
mkdir -p "$(dirname "$out")"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$venv/bin/python" > "$out.new"
chmod +x "$out.new"
mv -f "$out.new" "$out"
"$out" -c "$(cat "$root/internal/mlxrt/mlxrun.py")" --nodes > /dev/null
echo "$out"
