#!/usr/bin/env bash
# The comparison on Multi30k English-German: every encoding, tiny size, and several seeds of the two
# that matter most. Adds its rows to results/multi30k.en-de.jsonl and prints them as a table.
#
#   scripts/compare-multi30k.sh
#   RUNS="learned:2 learned:3" scripts/compare-multi30k.sh        more seeds, of one system
#   python -m diet_mt.cli.table results/*.jsonl --readme README.md       then rewrites the README
#
# The recipe is that of scripts/train.sh. Time: 32 minutes for every two trainings on two cores, two
# and a half hours in all. Disk: 60 MB for a training. Run again, it continues where it was.
set -euo pipefail

RUNS=${RUNS:-diet_rel:1 sinusoidal:1 diet_abs:1 none:1 learned:1 diet_rel:2 sinusoidal:2 sinusoidal:3 diet_rel:3}
DATA=${DATA:-data/multi30k.en-de}
SIZE=${SIZE:-tiny}
JOBS=${JOBS:-2}
export CHECKPOINTS=${CHECKPOINTS:-checkpoints/multi30k.$SIZE}
export RESULTS=${RESULTS:-results}
export TEST_SET=${TEST_SET:-Multi30k test_2016_flickr}
PYTHON=${PYTHON:-python3}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/side-by-side.sh
. scripts/side-by-side.sh

read -r -a runs <<<"$RUNS"
OUT=$DATA bash data-prep/prepare-multi30k.sh
train_all "$DATA/bin" "${runs[@]}"
evaluate_all "$DATA/bin" "${runs[@]}"
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -m diet_mt.cli.table --plain \
  "$RESULTS/$(basename "$DATA").jsonl"
