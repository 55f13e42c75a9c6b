#!/usr/bin/env bash
# A dress rehearsal of data-prep/prepare-wmt18.sh on made-up text: makes archives of the true layout,
# prepares them, and says how long each stage took and how much memory; then kills a second run once
# in the middle of every stage and lets it continue, which must give the same data. From the rates it
# works out what all 4.5 million pairs will take. Leave the machine to it alone. Linux only.
#
#   tools/rehearse-data-prep.sh                       a million pairs, byte-pair codes
#   tools/rehearse-data-prep.sh 20000 spm             fewer, SentencePiece
#   INTERRUPT= tools/rehearse-data-prep.sh            without the interruptions
#
# Writes RESULTS/<subwords>.jsonl, a line for each stage, and .md, the table. A million pairs take ten
# minutes for the first run on two cores that have nothing else to do, and 6 GB of disk in WORK.
set -euo pipefail

PAIRS=${1:-${PAIRS:-1000000}}
SUBWORDS=${2:-${SUBWORDS:-bpe}}
INTERRUPT=${INTERRUPT---interrupt}
WORK=${WORK:-data/rehearsal.$PAIRS}
RESULTS=${RESULTS:-results/data-prep}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/messages.sh
. "$root/scripts/messages.sh"
# shellcheck source=scripts/numbers.sh
. "$root/scripts/numbers.sh"

need_positive PAIRS
[[ $SUBWORDS =~ ^(bpe|spm)$ ]] || die "subwords '$SUBWORDS': choose bpe or spm"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
rm -rf "${WORK:?}/$SUBWORDS"
mkdir -p "$WORK/$SUBWORDS"
# The archives serve both kinds of subwords.
mkdir -p "$WORK/archives"
ln -s "$(cd "$WORK/archives" && pwd)" "$WORK/$SUBWORDS/archives"
out=$RESULTS/$SUBWORDS report=$WORK/$SUBWORDS/report
"$PYTHON" -m tools.rehearsal --pairs "$PAIRS" --subwords "$SUBWORDS" \
  ${WORKERS:+--workers "$WORKERS"} ${INTERRUPT:+"$INTERRUPT"} "$WORK/$SUBWORDS" >"$report"
mkdir -p "$RESULTS"
grep '^{' "$report" >"$out.jsonl.part"
grep -v '^{' "$report" >"$out.md.part"
mv "$out.jsonl.part" "$out.jsonl"
mv "$out.md.part" "$out.md"
cat "$out.md"
