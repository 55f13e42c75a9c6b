#!/usr/bin/env bash
# Creates the project's virtual environment: the pinned packages, fairseq built from its source archive, and
# diet_mt, editable.
#
#   bash scripts/setup.sh                          (what `make setup` calls)
#   PYTHON=python3.12 bash scripts/setup.sh        with another Python, >= 3.11
#   VENV=/somewhere/else bash scripts/setup.sh     in another folder
#
# Requires a C++ compiler and the network, which is not used again afterwards. Time: about four minutes on
# two cores, two of them for building fairseq. Disk: 1.5 GB, with CUDA packages (Linux, from PyPI) about
# 6 GB. A second run does nothing; an interrupted one continues.
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -eq 0 ] || { echo "error: unknown argument $1; see $0 -h" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh

VENV=${VENV:-.venv}
STAMP="$VENV/.setup-stamp"
# The default, python3, is used only to create an environment: see below.
REQUESTED_PYTHON=${PYTHON:-}

# The content of the stamp: a checksum of the inputs of this set-up, and the project folder, to which the
# editable installation refers.
stamp_content() {
  pwd -P
  checksum_of requirements/build.txt requirements/lock.txt requirements/dev.txt \
    requirements/fairseq.txt setup.py pyproject.toml scripts/setup.sh scripts/environment.sh \
    diet_mt/kernels/cpu.cpp diet_mt/kernels/step.inc diet_mt/kernels/int8.inc
}

# An environment keeps its Python; a request for another one is an error.
if [ -n "$REQUESTED_PYTHON" ] && [ -x "$VENV/bin/python" ]; then
  requested=$(python_version "$REQUESTED_PYTHON")
  has=$(python_version "$VENV/bin/python")
  [ -n "$requested" ] || die "PYTHON=$REQUESTED_PYTHON does not run"
  [ -z "$has" ] || [ "$requested" = "$has" ] ||
    die "$VENV has Python $has, PYTHON is $requested; remove $VENV, or set VENV to another folder"
fi

if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(stamp_content)" ] && [ -x "$VENV/bin/fairseq-train" ] &&
  compgen -G "diet_mt/kernels/_cpu*.so" >/dev/null &&
  [ "$(cat "$VENV/.made-in" 2>/dev/null)" = "$(cd "$VENV" && pwd -P)" ]; then
  exit 0
fi

PYTHON=${REQUESTED_PYTHON:-python3}
[ -n "$(python_version "$PYTHON")" ] ||
  die "$PYTHON: no Python there that runs; install Python >= 3.11, or set PYTHON to it"
python_at_least "$PYTHON" 3 11 ||
  die "$PYTHON is Python $(python_version "$PYTHON"); Python >= 3.11 is needed:" \
    "set PYTHON, as in: make setup PYTHON=python3.11"
need_compiler "$PYTHON"

rm -f "$STAMP"
make_venv "$PYTHON" "$VENV"
pip() { "$VENV/bin/python" -m pip --disable-pip-version-check "$@" </dev/null; }

say "== 1/4 build tools"
pip install --requirement requirements/build.txt
say "== 2/4 pinned packages, torch among them"
pip install --no-build-isolation --requirement requirements/dev.txt
say "== 3/4 fairseq, built from its source archive (about two minutes, without further output; Python 3.12 has a wheel)"
# pip caches the wheel, so a later environment takes seconds. With CUDA_HOME set, the build would also
# compile CUDA kernels that are not used here.
env -u CUDA_HOME "$VENV/bin/python" -m pip --disable-pip-version-check install \
  --no-build-isolation --no-deps --requirement requirements/fairseq.txt </dev/null
say "== 4/4 diet_mt"
pip install --no-build-isolation --no-deps --editable .

"$VENV/bin/python" -c 'from fairseq.data import data_utils_fast, token_block_utils_fast' ||
  die "fairseq was installed but its compiled modules do not load; remove $VENV and set up again"
# setuptools omits an optional extension that does not compile, without an error.
compgen -G "diet_mt/kernels/_cpu*.so" >/dev/null ||
  die "diet_mt/kernels/cpu.cpp was not compiled; to see why: $VENV/bin/python setup.py build_ext --inplace"
stamp_content >"$STAMP.part"
mv "$STAMP.part" "$STAMP"
say "set up: $VENV ($("$VENV/bin/python" --version), $(du -sh "$VENV" | cut -f1))"
