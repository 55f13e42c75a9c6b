#!/usr/bin/env bash
# Decodes a test set with a trained model, scores it with SacreBLEU and keeps the result.
#
#   scripts/evaluate.sh BIN CHECKPOINT_DIR [more fairseq-generate options]
#   scripts/evaluate.sh data/multi30k.en-de/bin checkpoints/diet_rel.1
#
# BIN: folder made by fairseq-preprocess, with the untouched sentences in BIN/../raw (the recipes in
# data-prep/ make both); CHECKPOINT_DIR: made by scripts/train.sh. The direction is the checkpoint's.
# Adds one line to RESULTS/<corpus>.jsonl and keeps the detokenized hypotheses in RESULTS/<corpus>/.
# Further options are part of the line and of the names of files; those of the settings are refused.
# Decoding is skipped where its output is there already, made by the same command from the same
# checkpoint; run again, it leaves everything as it is. The line of another training of the same name
# is not replaced: SYSTEM gives one of the two a name of its own.
# Time: about half a minute for a tiny model and 1,000 sentences on one core.
set -euo pipefail

BEAM=${BEAM:-10}
LENPEN=${LENPEN:-0.6}              # scores are divided by length^LENPEN or, with gnmt in the next
LENGTH_PENALTY=${LENGTH_PENALTY:-fairseq} # line, by ((5 + length) / 6)^LENPEN, as the paper's were
CHECKPOINT=${CHECKPOINT:-checkpoint_best.pt}
SUBSET=${SUBSET:-}                 # default: test, or test1 where BIN has it for the other direction
MAX_TOKENS=${MAX_TOKENS:-4096}     # source tokens in a batch
RESULTS=${RESULTS:-results}
TEST_SET=${TEST_SET:-}             # name in the record; default: the corpus and the subset
SUBWORDS=${SUBWORDS:-}             # bpe or spm; default: by the subword model in BIN
SYSTEM=${SYSTEM:-}                 # name in the record; default: the architecture's encoding
PYTHON=${PYTHON:-python3}

# shellcheck source=scripts/messages.sh
. "$(dirname "${BASH_SOURCE[0]}")/messages.sh"
# shellcheck source=scripts/corpus.sh
. "$(dirname "${BASH_SOURCE[0]}")/corpus.sh"

[ $# -ge 2 ] || die "usage: $0 BIN CHECKPOINT_DIR [fairseq-generate options]"
bin=$1 save=$2
shift 2
checkpoint=$save/$CHECKPOINT
need_bin "$bin"
[ -f "$checkpoint" ] || die "$checkpoint: no such checkpoint; train first"
subwords=$(subwords_of "$bin")
[ -f "$save/done" ] || echo "evaluate: warning: training in $save has not finished" >&2
root=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"

case $LENGTH_PENALTY in
  fairseq) task=() penalty= ;;
  gnmt) task=(--task diet_translation --length-penalty gnmt) penalty=.gnmt ;;
  *) die "LENGTH_PENALTY '$LENGTH_PENALTY': choose fairseq or gnmt" ;;
esac
plan=$("$PYTHON" -m diet_mt.evaluation.decoding_facts --subset "$SUBSET" "$bin" "$checkpoint" "$@")
{ read -r SUBSET && read -r -a languages && read -r mark && read -r facts; } <<<"$plan"
out=$save/decoded.$CHECKPOINT.$SUBSET.beam$BEAM.lenpen$LENPEN$penalty$mark
# Multiple 1: one distribution of fairseq drops the last sentences otherwise.
command=(
  fairseq-generate "$bin" --user-dir "$root/diet_mt" --path "$checkpoint"
  --beam "$BEAM" --lenpen "$LENPEN" --gen-subset "$SUBSET"
  --max-tokens "$MAX_TOKENS" --required-batch-size-multiple 1
  --log-format simple --log-interval 5
  "${languages[@]}" "${task[@]}" "$@"
)
# count: how far decoding has come, every 20 seconds. (Without its output closed, sleep would outlive
# the killed loop and hold on to the terminal.)
count() {
  while sleep 20 >/dev/null 2>&1; do
    echo "evaluate: $(grep -c '^H-' "$out.part") sentences of $save" >&2
  done
}

now=$(printf '%q ' "${command[@]}")
if [ "$out" -nt "$checkpoint" ] && [ -f "$out.facts" ] &&
  [ "$(cat "$out.command" 2>/dev/null)" = "$now" ]; then
  echo "evaluate: $out is there already" >&2
else
  echo "evaluate: decoding $SUBSET with $checkpoint" >&2
  rm -f "$out" "$out.part"
  count &
  counter=$!
  trap 'kill "$counter" 2>/dev/null || true' EXIT
  printf '%s' "$now" >"$out.command"
  # The row is about this decoding, whenever and wherever it is scored.
  printf '%s' "$facts" >"$out.facts"
  "${command[@]}" >"$out.part" 2>"$out.log" ||
    die "fairseq-generate failed: $(tail -n 1 "$out.log") (all of it in $out.log)"
  kill "$counter" 2>/dev/null || true
  mv "$out.part" "$out"
fi

options=(--beam "$BEAM" --lenpen "$LENPEN" --length-penalty "$LENGTH_PENALTY")
options+=(--subset "$SUBSET" --subwords "$subwords" --results "$RESULTS")
[ -z "$TEST_SET" ] || options+=(--test-set "$TEST_SET")
[ -z "$SYSTEM" ] || options+=(--system "$SYSTEM")
"$PYTHON" -m diet_mt.evaluation.score "$bin" "$checkpoint" "$out" "$out.log" \
  --generate-command "$out.command" --facts "$out.facts" "${options[@]}"
