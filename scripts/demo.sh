#!/usr/bin/env bash
# The whole way in one command: prepares a corpus, trains tiny models that differ in nothing but
# where position information goes, translates the test set with beam 10 and length penalty 0.6, and
# prints SacreBLEU's scores with their signatures.
#
#   scripts/demo.sh                  generated sentences full of word order (what `make demo` calls)
#   scripts/demo.sh multi30k         real image captions, downloaded or from MULTI30K_DIR
#   JOBS=1 scripts/demo.sh           on one core, in twice the time
#
# Time on two cores: eight minutes; multi30k 65 minutes, two trainings at a time. Disk: 200 MB, under
# data/ and checkpoints/. Run again, it continues where it was, or only prints the table.
set -euo pipefail

CORPUS=${1:-${CORPUS:-word_order}}
SIZE=tiny
JOBS=${JOBS:-2}
RUNS=${RUNS:-sinusoidal:1 diet_rel:1 diet_abs:1 none:1}
export CHECKPOINTS=${CHECKPOINTS:-checkpoints/demo.$CORPUS}
export RESULTS=${RESULTS:-$CHECKPOINTS/results}
PYTHON=${PYTHON:-python3}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/side-by-side.sh
. scripts/side-by-side.sh

case $CORPUS in
  word_order)
    data=${DATA:-data/demo.en-de} recipe=data-prep/prepare-demo.sh
    export TEST_SET="generated word order"
    # Short sentences and few words: small batches, many updates.
    export MAX_EPOCH=${MAX_EPOCH:-3} MAX_TOKENS=${MAX_TOKENS:-1024} LOG_INTERVAL=${LOG_INTERVAL:-20}
    export LR=${LR:-0.003} WARMUP=${WARMUP:-300} DROPOUT=${DROPOUT:-0.1}
    ;;
  multi30k)
    data=${DATA:-data/multi30k.en-de} recipe=data-prep/prepare-multi30k.sh
    export TEST_SET="Multi30k test_2016_flickr"
    say "Multi30k takes about 32 minutes for every two trainings, on two cores."
    ;;
  *) die "CORPUS '$CORPUS': choose word_order or multi30k" ;;
esac
command -v fairseq-train >/dev/null || die "fairseq-train: not found; use make demo, or put .venv/bin on the PATH"
read -r -a runs <<<"$RUNS"

say "== 1/4 corpus: $data"
OUT=$data bash "$recipe"
BIN=$data/bin
say "== 2/4 training: $RUNS (name:seed), $JOBS at a time"
train_all "${runs[@]}"
say "== 3/4 translating and scoring the test set"
# evaluate.sh has its own batches: decoding is not part of the recipe.
MAX_TOKENS=4096 evaluate_all "${runs[@]}"
say "== 4/4 results, after $((SECONDS / 60)) min $((SECONDS % 60)) s"
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -m diet_mt leaderboard \
  "$RESULTS/$(basename "$data").jsonl"
