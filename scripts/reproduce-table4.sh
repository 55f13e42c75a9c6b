#!/usr/bin/env bash
# Table 4 of the paper, all of it: prepares the data of each language pair, trains every system in
# every direction, decodes newstest2018 with beam 10 and length penalty 0.6, scores with SacreBLEU,
# and ends with the leaderboard, our figures beside the paper's.
#
#   scripts/reproduce-table4.sh                                  twelve trainings of 250,000 updates
#   SYSTEMS="sinusoidal diet_rel diet_abs" DIRECTIONS=en-de scripts/reproduce-table4.sh
#   ARCHIVES=DIR scripts/reproduce-table4.sh                     the data from a folder, no network
#   SCALE=small NEWSTEST_DIR=DIR scripts/reproduce-table4.sh     the same on a small machine
#
# SCALE=small goes the same way with the same scripts, and its figures mean nothing beside the
# paper's: tiny models (4 layers, width 128) see some 20,000 sentences of ten years of news tests for
# a few minutes each, where the paper's saw 4.5 million for a day, and are tested on newstest2016.
# They hardly learn to translate, and which encoding leads after so few updates says how fast it
# starts, no more. It shows that every step works, from raw text to a row of the table.
#
# Run again, it continues where it was. Time: on one recent GPU about a day for each training; small:
# 40 minutes on two cores. Disk: 40 GB and 3 GB for each training; small: 400 MB. For several
# machines, train with scripts/train-wmt18.sh first; this script then finds it done.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/messages.sh
. "$root/scripts/messages.sh"
from_here ARCHIVES NEWSTEST_DIR DATA_DIR CHECKPOINTS RESULTS # below: in the checkout

SCALE=${SCALE:-full}
case $SCALE in
  full)
    DIRECTIONS=${DIRECTIONS:-en-de de-en en-cs cs-en}
    TEST_SET=${TEST_SET:-newstest2018}
    JOBS=${JOBS:-1} # each on all GPUs
    export SIZE=${SIZE:-base}
    ;;
  small)
    DIRECTIONS=${DIRECTIONS:-en-de en-cs}
    TEST_SET=${TEST_SET:-newstest${TEST_YEAR:-2016}}
    JOBS=${JOBS:-2}
    export SIZE=${SIZE:-tiny} MAX_UPDATE=${MAX_UPDATE:-1000} SAVE_EVERY=${SAVE_EVERY:-500}
    export GLOBAL_BATCH=${GLOBAL_BATCH:-2000} LR=${LR:-0.003} WARMUP=${WARMUP:-300}
    export LOG_INTERVAL=${LOG_INTERVAL:-25} VALID_BEAM=${VALID_BEAM:-0}
    ;;
  *)
    die "SCALE '$SCALE': choose full or small"
    ;;
esac
SYSTEMS=${SYSTEMS:-sinusoidal shaw diet_rel}
SEEDS=${SEEDS:-1}
LENGTH_PENALTIES=${LENGTH_PENALTIES:-gnmt} # the paper's; "gnmt fairseq" for both
SUBWORDS=${SUBWORDS:-bpe}                  # or spm
DATA_DIR=${DATA_DIR:-data}
CHECKPOINTS=${CHECKPOINTS:-checkpoints/table4.$SCALE}
AVERAGE=${AVERAGE:-0}
PYTHON=${PYTHON:-python3}
export TEST_SET RESULTS=${RESULTS:-results} LENGTH_PENALTIES DATA_DIR SCALE AVERAGE SUBWORDS PYTHON

cd "$root"
# shellcheck source=scripts/side-by-side.sh
. scripts/side-by-side.sh

# data_of DIRECTION: the folder of its language pair.
data_of() {
  local foreign=${1%-*} pieces=
  [ "$foreign" != en ] || foreign=${1#*-}
  [ "$SUBWORDS" = bpe ] || pieces=.$SUBWORDS
  if [ "$SCALE" = small ]; then
    echo "$DATA_DIR/newstest.en-$foreign$pieces"
  else
    echo "$DATA_DIR/wmt18.$foreign-en$pieces"
  fi
}

# Runs are DIRECTION/SYSTEM:SEED.
train_one() {
  local direction=${1%%/*} run=${1#*/}
  DATA=$(data_of "$direction") SAVE_DIR=$(folder_of "$1") SEED=${run#*:} \
    scripts/train-wmt18.sh "$direction" "${run%:*}"
}

evaluate_one() {
  local penalty
  [ "$AVERAGE" = 0 ] || export CHECKPOINT=checkpoint_average.pt
  for penalty in $LENGTH_PENALTIES; do
    LENGTH_PENALTY=$penalty scripts/evaluate.sh "$(data_of "${1%%/*}")/bin" "$(folder_of "$1")"
  done
}
export -f data_of

runs=() folders=() rows=()
for direction in $DIRECTIONS; do
  [[ $direction =~ ^(en-(de|cs)|(de|cs)-en)$ ]] ||
    die "direction '$direction': choose from en-de, de-en, en-cs, cs-en"
  folder=$(data_of "$direction")
  folders+=("$folder")
  for system in $SYSTEMS; do
    for seed in $SEEDS; do runs+=("$direction/${system//-/_}:$seed"); done
  done
done
mapfile -t folders < <(printf '%s\n' "${folders[@]}" | sort -u)
for folder in "${folders[@]}"; do rows+=("$RESULTS/$(basename "$folder").jsonl"); done

say "== 1/4 data: ${folders[*]}"
for folder in "${folders[@]}"; do
  recipe=$(basename "$folder")
  recipe=${recipe%".$SUBWORDS"}
  if [ "$SCALE" = small ]; then
    OUT=$folder bash data-prep/prepare-newstest.sh "${recipe#newstest.}"
  else
    OUT=$folder bash data-prep/prepare-wmt18.sh "${recipe#wmt18.}"
  fi
done
say "== 2/4 training: ${runs[*]} (direction/system:seed), $JOBS at a time"
train_all "${runs[@]}"
say "== 3/4 translating and scoring $TEST_SET"
# Decoding has batches of its own.
MAX_TOKENS=4096 evaluate_all "${runs[@]}"
say "== 4/4 results, after $((SECONDS / 60)) min $((SECONDS % 60)) s"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
references=() # of every direction; test1 where the two directions of a pair have different ones
for direction in $DIRECTIONS; do
  for file in "$(data_of "$direction")"/raw/test{,1}."${direction#*-}"; do
    if [ -f "$file" ]; then references+=("$file"); fi
  done
done
"$PYTHON" -m diet_mt compare "${rows[@]}" --references "${references[@]}" >&2 ||
  say "   no p-values, for the reason above"
"$PYTHON" -m diet_mt leaderboard "${rows[@]}" --test-set "$TEST_SET"
