# shellcheck shell=bash
# What the recipes share: from a folder of raw sentences to a folder that fairseq-train reads.
# Sourced, not run, after the recipe's settings: PYTHON, OUT, SRC, TGT, BPE_MERGES, WORKERS.
#
# Every stage makes one file or folder of OUT: it is written as X.part and renamed when complete, so
# what has its name is whole, and a stage whose result is there is skipped.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PYTHONUTF8=1 TQDM_DISABLE=1

# shellcheck source=scripts/messages.sh
. "$ROOT/scripts/messages.sh"

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

# data MODULE ARGUMENT...: a command of diet_mt.data.
data() { "$PYTHON" "$ROOT/data-prep/run.py" "$@"; }

# check_setup: the programs are there, and OUT belongs to the settings it was begun with.
check_setup() {
  local now="$SRC-$TGT BPE_MERGES=$BPE_MERGES${SETTINGS:+ $SETTINGS}" before
  need od du wc
  need_python fairseq_cli sacremoses subword_nmt
  [[ $BPE_MERGES =~ ^[1-9][0-9]*$ ]] || die "BPE_MERGES must be a positive number, got '$BPE_MERGES'"
  [[ $WORKERS =~ ^[1-9][0-9]*$ ]] || die "WORKERS must be a positive number, got '$WORKERS'"
  mkdir -p "$OUT"
  if [ -e "$OUT/settings" ]; then
    before=$(cat "$OUT/settings")
    [ "$before" = "$now" ] ||
      die "$OUT was made with '$before', not '$now'; remove it or set OUT to another folder"
  else
    printf '%s\n' "$now" >"$OUT/settings.part"
    mv "$OUT/settings.part" "$OUT/settings"
  fi
}

# stage NAME COMMAND...: makes OUT/NAME by COMMAND, which is given OUT/NAME.part to write.
stage() {
  local name=$1 started=$SECONDS
  shift
  if [ -e "$OUT/$name" ]; then
    say "== $name: done before"
    return
  fi
  say "== $name ..."
  rm -rf "$OUT/$name.part"
  "$@" "$OUT/$name.part"
  mv "$OUT/$name.part" "$OUT/$name"
  say "== $name: $(size_of "$OUT/$name"), $((SECONDS - started)) s"
}

# size_of PATH: lines of a file, of the training side of a folder of text, or bytes of another.
size_of() {
  if [ -f "$1" ]; then
    echo "$(wc -l <"$1") lines"
  elif [ -f "$1/train.$SRC" ]; then
    echo "$(wc -l <"$1/train.$SRC") + $(wc -l <"$1/valid.$SRC") + $(wc -l <"$1/test.$SRC") pairs"
  else
    echo "$(du -sk "$1" | cut -f1) KiB"
  fi
}

make_tok() { data moses --workers "$WORKERS" "$OUT/raw" "$1" "$SRC" "$TGT"; }

make_codes() {
  data subwords learn --merges "$BPE_MERGES" --out "$1" \
    "$OUT/tok/train.$SRC" "$OUT/tok/train.$TGT"
}

make_bpe() { data subwords apply --codes "$OUT/bpe.codes" "$OUT/tok" "$1" "$SRC" "$TGT"; }

make_bin() {
  local log=$OUT/preprocess.log
  "$PYTHON" -m fairseq_cli.preprocess --source-lang "$SRC" --target-lang "$TGT" --joined-dictionary \
    --trainpref "$OUT/bpe/train" --validpref "$OUT/bpe/valid" --testpref "$OUT/bpe/test" \
    --destdir "$1" --workers "$WORKERS" >"$log" 2>&1 ||
    die "fairseq-preprocess failed: $(tail -n 1 "$log") (all of it in $log)"
}

# binarized FILE: how many sentences a fairseq .idx file counts (after 9 + 8 + 1 bytes of header).
binarized() { od -An -t u8 -j 18 -N 8 "$1" | tr -d ' '; }

# prepare TRAIN VALID TEST: all stages after raw/, then a look at the counts, expected ones given.
prepare() {
  local split lang count wrong=0
  stage tok make_tok
  stage bpe.codes make_codes
  stage bpe make_bpe
  stage bin make_bin
  for split in train valid test; do
    for lang in "$SRC" "$TGT"; do
      count=$(binarized "$OUT/bin/$split.$SRC-$TGT.$lang.idx")
      say "   $split.$lang: $count sentences, expected $1"
      [ "$count" = "$1" ] || wrong=1
    done
    shift
  done
  [ "$wrong" = 0 ] || die "$OUT/bin does not have the expected counts; remove $OUT and run again"
  say "ready: $OUT/bin"
}
