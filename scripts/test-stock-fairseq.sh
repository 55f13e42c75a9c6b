#!/usr/bin/env bash
# Runs the tests with stock fairseq 0.12.2 on Python 3.10, in a separate environment, and writes a summary
# (versions, command, counts, last lines) to results/stock-fairseq.txt.
#
#   bash scripts/test-stock-fairseq.sh                       all tests except slow ones and those for a GPU
#   bash scripts/test-stock-fairseq.sh tests/positions       arguments of pytest; the summary is printed,
#                                                            or written to the file SUMMARY, if set
#   PYTHON310=/usr/bin/python3.10 bash scripts/test-stock-fairseq.sh
#   VENV_STOCK=/somewhere/else bash scripts/test-stock-fairseq.sh
#
# Requires Python 3.10 and a C++ compiler. Time: about ten minutes the first time, mostly for downloads, on
# Linux with torch's CUDA packages. Disk: 7 GB. A second run only tests.
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh

PYTHON310=${PYTHON310:-python3.10}
VENV_STOCK=${VENV_STOCK:-.venv-stock}
if [ $# -eq 0 ]; then SUMMARY=${SUMMARY:-results/stock-fairseq.txt}; fi
WORKERS=${WORKERS:-2}
STAMP="$VENV_STOCK/.setup-stamp"

stamp_content() {
  pwd -P
  checksum_of requirements/stock.txt requirements/stock-build.txt setup.py pyproject.toml "${BASH_SOURCE[0]}" \
    diet_mt/kernels/cpu.cpp diet_mt/kernels/step.inc diet_mt/kernels/int8.inc
}

pip() { "$VENV_STOCK/bin/python" -m pip --disable-pip-version-check "$@" </dev/null; }

set_up() {
  if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(stamp_content)" ]; then return 0; fi
  local version
  version=$(python_version "$PYTHON310")
  [ "$version" = 3.10 ] ||
    die "$PYTHON310: ${version:+Python $version,} not Python 3.10; set PYTHON310 to one" \
      "(stock fairseq 0.12.2 does not run on 3.11)"
  need_compiler "$PYTHON310"
  rm -f "$STAMP"
  make_venv "$PYTHON310" "$VENV_STOCK"
  say "== 1/3 pinned packages, torch among them (a few gigabytes on Linux, once)"
  # First the pinned pip, because newer ones do not read the rest (see the file).
  pip install "$(grep '^pip==' requirements/stock.txt)"
  pip install --requirement requirements/stock.txt
  # py3langid requires numpy >= 2, which stock fairseq does not support, but runs with older ones.
  pip install --no-deps py3langid==0.4.0
  say "== 2/3 stock fairseq 0.12.2, built from its source archive (half a minute)"
  PIP_CONSTRAINT=requirements/stock-build.txt pip install --no-deps fairseq==0.12.2
  "$VENV_STOCK/bin/python" -c 'from fairseq.data import data_utils_fast, token_block_utils_fast'
  say "== 3/3 diet_mt"
  pip install --no-build-isolation --no-deps --editable .
  stamp_content >"$STAMP.part"
  mv "$STAMP.part" "$STAMP"
}

# versions: prints a line for each package on which the outcome depends.
versions() {
  "$VENV_STOCK/bin/python" - <<'PYTHON'
import importlib.metadata as metadata
import platform

print(f"python        {platform.python_version()} on {platform.system()} {platform.machine()}")
for name in ("fairseq", "torch", "numpy", "omegaconf", "hydra-core", "sacrebleu", "pytest"):
    print(f"{name:13s} {metadata.version(name)}")
PYTHON
}

# commit: prints the tested revision.
commit() {
  local changed=
  git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || { echo unknown && return 0; }
  [ -z "$(git status --porcelain -- . ':!results')" ] || changed=" with uncommitted changes"
  echo "$(git rev-parse --short=12 HEAD)$changed"
}

# per_file: prints the number of tests of each file, from pytest's XML record.
per_file() {
  "$VENV_STOCK/bin/python" - "$record" <<'PYTHON'
import sys
import xml.etree.ElementTree as xml
from collections import Counter

cases = list(xml.parse(sys.argv[1]).iter("testcase"))
skipped = Counter(case.get("classname") for case in cases if case.find("skipped") is not None)
for module, count in sorted(Counter(case.get("classname") for case in cases).items()):
    print(f"{count:5d}  {module}" + (f"  ({skipped[module]} skipped)" if skipped[module] else ""))
PYTHON
}

# summary LOG STATUS ARGUMENT...
summary() {
  local log=$1 status=$2 arguments
  shift 2
  printf -v arguments ' %s' "$@"
  echo "The test suite against stock fairseq, written by scripts/test-stock-fairseq.sh"
  echo
  echo "command       bash scripts/test-stock-fairseq.sh${arguments% }"
  echo "date          $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "commit        $(commit)"
  versions
  echo "outcome       $(tail -n 1 "$log" | sed 's/^=* *//; s/ *=*$//')"
  echo "exit status   $status"
  echo
  echo "tests in each file (a green suite says nothing about files that are not listed):"
  per_file
  echo
  echo "pytest's last lines:"
  # Without the folders of this machine.
  grep -v '^-* generated xml file' "$log" | tail -n 25 | sed "s|$PWD/||g; s|$PWD|.|g"
}

set_up
log=$(mktemp)
record=$(mktemp)
trap 'rm -f "$log" "$record"' EXIT
# Checked first, because tests that do not import the plugin would pass without it.
"$VENV_STOCK/bin/python" -c 'import diet_mt.plugin, fairseq; assert fairseq.__version__ == "0.12.2"' ||
  die "diet_mt cannot be imported with stock fairseq 0.12.2 (see above)"
say "== pytest"
status=0
bin=$(cd "$VENV_STOCK" && pwd)/bin
PATH="$bin:$PATH" PYTHON="$bin/python" OMP_NUM_THREADS=1 \
  "$bin/python" -m pytest -n "$WORKERS" --dist worksteal --junitxml "$record" "$@" </dev/null 2>&1 | tee "$log" || status=$?
if [ -n "${SUMMARY:-}" ]; then
  mkdir -p "$(dirname "$SUMMARY")"
  summary "$log" "$status" "$@" >"$SUMMARY.part"
  mv "$SUMMARY.part" "$SUMMARY"
  say "summary: $SUMMARY"
else
  summary "$log" "$status" "$@"
fi
exit "$status"
