#!/usr/bin/env bash
# Fine-tunes a pretrained encoder on SQuAD's questions and tests it in every language of XQuAD, MLQA
# and TyDiQA-GoldP without another look (zero-shot); prints the paper's table 3 beside ours.
#
#   scripts/finetune-qa.sh SYSTEM CHECKPOINT [more fairseq-train options]
#   scripts/finetune-qa.sh diet-rel checkpoints/mlm.multi/diet_rel/checkpoint_best.pt
#   GRID=small SEGMENTS=input scripts/finetune-qa.sh learned .../checkpoint_best.pt
#   DRY_RUN=1 scripts/finetune-qa.sh ...       prints the command of every run, does nothing
#
# DATA is made by data-prep/prepare-qa.sh. Checkpoints and the learning rate are chosen by F1 on
# DATA/valid (the paper does not say by what); then every test set counts with the median of the
# seeds. Adds rows, one for each run and set, to RESULTS/tasks/{SQuAD,XQuAD,MLQA,TyDiQA-GoldP}.jsonl; the
# predictions are in CHECKPOINTS/RUN/answers. Run again, it continues where it was. Time: 20 runs over
# 88k questions; disk: a checkpoint a run. Licence of the data: see data-prep/prepare-qa.sh.
set -euo pipefail

DATA=${DATA:-data/SQuAD}
MAX_ANSWER=${MAX_ANSWER:-30}       # subwords of an answer at most (BERT's; not in the paper)
TEST_BATCH=${TEST_BATCH:-32}       # windows at a time when testing

# shellcheck source=scripts/grid.sh
. "$(dirname "${BASH_SOURCE[0]}")/grid.sh"

predict_run() {
  local folder=$1
  shift
  "$PYTHON" -m diet_mt answer "$DATA" "$folder/checkpoint_best.pt" --split "$@" \
    --max-answer "$MAX_ANSWER" --batch-size "$TEST_BATCH" --system "$SYSTEM" \
    --pretrained "$PRETRAINED" --out "$folder/answers" --results "$RESULTS/tasks"
}

use_grid 3 3
[ $# -ge 2 ] || die "usage: $0 SYSTEM CHECKPOINT [fairseq-train options]"
TASK=SQuAD SYSTEM=${1//_/-} PRETRAINED=$2
CHECKPOINTS=${CHECKPOINTS:-checkpoints/SQuAD/$SYSTEM.$SEGMENTS}
[ -f "$DATA/train/about.json" ] || die "$DATA: not there; run data-prep/prepare-qa.sh"
SPLITS=valid
for file in "$DATA"/test_*/about.json; do
  [ ! -f "$file" ] || SPLITS+=" $(basename "$(dirname "$file")")"
done
export MAX_ANSWER TEST_BATCH

run_grid --max-answer "$MAX_ANSWER" "${@:3}"
tables=()
for name in XQuAD MLQA TyDiQA-GoldP SQuAD; do
  [ ! -f "$RESULTS/tasks/$name.jsonl" ] || tables+=("$RESULTS/tasks/$name.jsonl")
done
"$PYTHON" -m diet_mt leaderboard "${tables[@]}"
