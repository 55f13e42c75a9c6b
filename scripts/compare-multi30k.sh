#!/usr/bin/env bash
# The comparison on Multi30k: every encoding, tiny size, and several seeds of the two that matter
# most. Adds its rows to results/multi30k.PAIR.jsonl and prints them as a table.
#
#   scripts/compare-multi30k.sh                                   English to German, all encodings
#   scripts/compare-multi30k.sh cs-en                             Czech to English, the main five
#   RUNS="learned:2 learned:3" scripts/compare-multi30k.sh        more seeds, of one system
#   diet-mt leaderboard --readme README.md                        then rewrites the README
#
# The recipe is that of scripts/train.sh. Time: half an hour for every two trainings on two cores,
# four and a half hours in all for en-de. Disk: 60 MB for a training. Run again, it continues where
# it was.
set -euo pipefail

PAIR=${1:-en-de}
MAIN="sinusoidal:1 shaw:1 t5:1 diet_rel:1 diet_abs:1"
if [ "$PAIR" = en-de ]; then
  RUNS=${RUNS:-$MAIN none:1 learned:1 diet_rel:2 sinusoidal:2 sinusoidal:3 diet_rel:3 concat:1 tupe_abs:1 tupe_rel:1 rotary:1 alibi:1 linformer:1 diet_abs_lin:1}
fi
RUNS=${RUNS:-$MAIN}
DATA=${DATA:-data/multi30k.$PAIR}
SIZE=${SIZE:-tiny}
JOBS=${JOBS:-2}
export CHECKPOINTS=${CHECKPOINTS:-checkpoints/multi30k.$PAIR.$SIZE}
export RESULTS=${RESULTS:-results}
export TEST_SET=${TEST_SET:-Multi30k test_2016_flickr}
PYTHON=${PYTHON:-python3}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/side-by-side.sh
. scripts/side-by-side.sh

read -r -a runs <<<"$RUNS"
OUT=$DATA bash data-prep/prepare-multi30k.sh "$PAIR"
BIN=$DATA/bin
train_all "${runs[@]}"
evaluate_all "${runs[@]}"
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -m diet_mt leaderboard \
  "$RESULTS/$(basename "$DATA").jsonl"
