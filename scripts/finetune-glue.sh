#!/usr/bin/env bash
# Fine-tunes a pretrained encoder on one task of GLUE over the paper's grid, and prints its row of
# the paper's table 2 beside ours.
#
#   scripts/finetune-glue.sh TASK SYSTEM CHECKPOINT [more fairseq-train options]
#   scripts/finetune-glue.sh CoLA diet-rel checkpoints/mlm/diet_rel/checkpoint_best.pt
#   SEGMENTS=input GRID=small scripts/finetune-glue.sh RTE learned .../checkpoint_best.pt
#   DRY_RUN=1 scripts/finetune-glue.sh ...     prints the command of every run, does nothing
#
# TASK: as in data-prep/prepare-glue.sh, which makes DATA; SYSTEM: the checkpoint's encoding. A run
# counts with its best checkpoint on the dev set, a setting with the median of its seeds, the system
# with its best setting: "the median of the maximum over all checkpoints among five runs". MNLI's
# checkpoints are chosen on the matched dev set. Adds rows to RESULTS/tasks/TASK.jsonl. Run again, it
# continues where it was. Time: 40 runs, each like scripts/finetune.sh. Disk: a checkpoint a run.
# Licence of the data: each task's own.
set -euo pipefail

DATA_DIR=${DATA_DIR:-data/glue}
TEST=${TEST:-0}                    # 1: write the best run's predictions for GLUE's server, too

# shellcheck source=scripts/grid.sh
. "$(dirname "${BASH_SOURCE[0]}")/grid.sh"

use_grid "5 10" 5
[ $# -ge 3 ] || die "usage: $0 TASK SYSTEM CHECKPOINT [fairseq-train options]"
TASK=$1 SYSTEM=${2//_/-} PRETRAINED=$3
DATA=${DATA:-$DATA_DIR/$TASK}
CHECKPOINTS=${CHECKPOINTS:-checkpoints/glue/$TASK/$SYSTEM.$SEGMENTS}
[ -d "$DATA/input0" ] || die "$DATA: not there; run data-prep/prepare-glue.sh $TASK"
SPLITS=valid
[ ! -f "$DATA/label/valid1.idx" ] || SPLITS="valid valid1"

run_grid "${@:4}"
if [ "$TEST" = 1 ]; then
  tests=()
  for file in "$DATA"/input0/test*.idx; do tests+=("$(basename "$file" .idx)"); done
  "$PYTHON" -m diet_mt predict "$DATA" "$BEST/checkpoint_best.pt" --task "$TASK" \
    --split "${tests[@]}" --predictions "$CHECKPOINTS/predictions" >&2
fi
"$PYTHON" -m diet_mt leaderboard "$RESULTS/tasks/$TASK.jsonl"
