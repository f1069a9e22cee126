#!/bin/sh
# Makes .venv with this project and the extras named, for example: scripts/environment.sh demo
# With `workers` it makes .venv/workers with what the workers of a cluster need, and nothing else.
# VENV names another folder than .venv; with OLDEST it gets the lowest versions that will do.
# PYTHON names the interpreter to use; without it, the first suitable one on the PATH is taken.
set -eu
cd "$(dirname "$0")/.."
extras=${1:?name the extras of pyproject.toml to install, for example: demo}
venv=${VENV:-.venv}
log=$(mktemp)
parser=$(mktemp -d)
trap 'rm -rf "$log" "$parser"' EXIT

suitable() {
  "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

# On Debian `venv` is a package of its own; `virtualenv` does as well.
make_venv() {
  "$1" -m venv --clear "$venv" >>"$log" 2>&1 || "$1" -m virtualenv --clear "$venv" >>"$log" 2>&1
}

if ! { [ -x "$venv/bin/python" ] && suitable "$venv/bin/python"; }; then
  for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
    if suitable "$python" && make_venv "$python"; then
      made=yes
      break
    fi
  done
  if [ -z "${made:-}" ]; then
    cat "$log" >&2
    echo "No Python from 3.10 to 3.14 that can make a virtual environment was found." >&2
    echo "Install one (on Debian: apt install python3 python3-venv), or name it: make PYTHON=…" >&2
    exit 1
  fi
fi

if [ "$extras" = workers ]; then
  what="pyarrow and boto3" where=$venv/workers
  # Without a pip of its own, which a virtualenv could not give it.
  "$venv/bin/python" -m venv --without-pip --clear "$where"
  packages=$("$where/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  set -- --target "$packages" "pyarrow>=24" "boto3>=1.36"
else
  what="dbt-mzs3[$extras]" where=$venv
  # dbt-core 1.12 requires a package that downloads a program while it is built, so it can't be had
  # from a package index alone. dbt only starts it for `dbt --use-v2-parser`: an empty one will do.
  cat >"$parser/pyproject.toml" <<'END'
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[project]
name = "dbt-core-experimental-parser"
version = "2.0.8"
[tool.hatch.build.targets.wheel]
bypass-selection = true
END
  set -- "$parser" -e ".[$extras]"
fi

install() {
  if [ -z "${OLDEST:-}" ]; then
    "$venv/bin/python" -m pip install --disable-pip-version-check "$@"
  else # which pip does not know how to find
    "$venv/bin/python" -m pip install --disable-pip-version-check uv &&
      "$venv/bin/python" -m uv pip install --python "$venv/bin/python" --resolution lowest-direct "$@"
  fi
}

echo "Installing $what into $where (some minutes the first time) …"
if ! install "$@" >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "pip could not install $what: its last lines are above." >&2
  exit 1
fi
