# shellcheck shell=bash
# The machinery of the recipes: stages that are skipped, continued, timed.
# Sourced, not run, after the recipe's settings: PYTHON, OUT, SRC, TGT, WORKERS; then stages.sh.
#
# Every stage makes one file or folder of OUT: it is written as X.part and renamed when complete, so
# what has its name is whole, and a stage whose result is there is skipped. Within X.part the same
# holds for each file, so an interrupted stage continues.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PROGRESS=${PROGRESS:-10}    # seconds from one progress line to the next
LOCK_WAIT=${LOCK_WAIT:-600} # seconds to wait for another run on the same OUT
export PROGRESS PYTHONUTF8=1 TQDM_DISABLE=1

# shellcheck source=scripts/messages.sh
. "$ROOT/scripts/messages.sh"
# shellcheck source=scripts/numbers.sh
. "$ROOT/scripts/numbers.sh"

# nproc would take the number of threads in these variables for that of the cores.
WORKERS=${WORKERS:-$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)}

# need PROGRAM...: stops unless each of them can be called.
need() {
  local program
  for program; do
    command -v "$program" >/dev/null || die "$program: not found; install it or put it on the PATH"
  done
}

# need_python MODULE...: stops unless PYTHON has each of them.
need_python() {
  local missing
  need "$PYTHON"
  missing=$("$PYTHON" -c '
import sys
from importlib.util import find_spec
print(*(name for name in sys.argv[1:] if find_spec(name) is None))' "$@")
  [ -z "$missing" ] || die "$PYTHON has no module $missing; install the project's requirements"
}

# data MODULE ARGUMENT...: a command of diet_mt.corpora.
data() { "$PYTHON" "$ROOT/data-prep/run.py" "$@"; }

# begin SETTINGS: makes OUT, for this run alone, unless it belongs to other settings.
begin() {
  local now=$1 before
  mkdir -p "$OUT" 2>/dev/null || die "$OUT: the folder cannot be made; set OUT to another one"
  [ -r "$OUT" ] || die "$OUT: cannot be read; set OUT to another folder"
  exec 9<"$OUT" # open in every process of this run until it ends, and locked as long
  data stages.lock 9 "$LOCK_WAIT" "$OUT"
  if [ -e "$OUT/settings" ]; then
    before=$(cat "$OUT/settings")
    [ "$before" = "$now" ] ||
      die "$OUT was made with '$before', not '$now'; remove it or set OUT to another folder"
  else
    keep_settings "$OUT/settings" "$now"
  fi
}

# keep_settings FILE SETTINGS
keep_settings() {
  { printf '%s\n' "$2" >"$1.part"; } 2>/dev/null ||
    die "$1: cannot be written; make room, or set OUT to another folder"
  mv "$1.part" "$1"
}

# own_settings NAME SETTINGS: what the stage NAME, and not those before it, depends on besides; may
# change as long as OUT/NAME is not made.
own_settings() {
  local name=$1 now=$2 before
  before=$(cat "$OUT/$name.settings" 2>/dev/null) || true
  [ "$before" != "$now" ] || return 0
  [ ! -e "$OUT/$name" ] ||
    die "$OUT/$name was made with '$before', not '$now'; remove it and what was made of it, or set OUT to another folder"
  keep_settings "$OUT/$name.settings" "$now"
}

# stage NAME COMMAND...: makes OUT/NAME by COMMAND, which is given OUT/NAME.part to write, and what
# an interrupted run left there. Adds a line to OUT/stages.tsv: name, seconds, lines (0: not text).
stage() {
  local name=$1 started=$SECONDS size
  shift
  if [ -e "$OUT/$name" ]; then
    say "== $name: done before"
    return
  fi
  say "== $name ..."
  "$@" "$OUT/$name.part"
  mv "$OUT/$name.part" "$OUT/$name"
  size=$(size_of "$OUT/$name")
  { printf '%s\t%s\t%s\n' "$name" "$((SECONDS - started))" "$(lines_of "$OUT/$name")" >>"$OUT/stages.tsv"; } \
    2>/dev/null || die "$OUT/stages.tsv: cannot be written; make room and run again"
  say "== $name: $size, $((SECONDS - started)) s"
}

# lines_of PATH: lines of a file of text, or of the training side of a folder of text.
lines_of() {
  local file=$1
  [ -f "$file" ] || file=$1/train.$SRC
  if [ -f "$file" ]; then count "$file"; else echo 0; fi
}

# count FILE: its lines, the last one with or without its end.
count() { LC_ALL=C grep -c '' "$1" || true; }

# shares: into how many parts fairseq-preprocess divides a file, each for a process of its own. Its
# first process does its own part when all others have ended, so with a part for each core they would
# all wait as long again. The result is the same for any number.
shares() { echo $((4 * WORKERS)); }

# binarized FILE: how many sentences a fairseq .idx file counts (after 9 + 8 + 1 bytes of header).
binarized() { od -An -t u8 -j 18 -N 8 "$1" | tr -d ' '; }

# size_of PATH: lines of a file, of the training side of a folder of text, or bytes of another.
size_of() {
  if [ -f "$1" ]; then
    echo "$(count "$1") lines"
  elif [ -f "$1/test.$SRC" ]; then
    echo "$(count "$1/train.$SRC") + $(count "$1/valid.$SRC") + $(count "$1/test.$SRC") pairs"
  else
    echo "$(du -sk "$1" | cut -f1) KiB"
  fi
}

# room NAME MIB: stops unless OUT has so much space left for what a stage makes.
room() {
  local free
  free=$(($(df -Pk "$OUT" | awk 'NR == 2 { print $4 }') / 1024))
  [ "$free" -ge "$2" ] ||
    die "$OUT: $1 needs about $2 MiB, but only $free MiB are free; make room or set OUT elsewhere"
  [ "$2" -lt 1000 ] || say "   $1 needs about $2 MiB of disk; $free MiB are free"
}

# mib_of PERCENT PATH...: that share of the MiB that the paths take.
mib_of() {
  local percent=$1
  shift
  echo $(($(du -skcL "$@" | tail -n 1 | cut -f1) * percent / 100 / 1024))
}
