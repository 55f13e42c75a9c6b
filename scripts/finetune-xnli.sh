#!/usr/bin/env bash
# Fine-tunes a multilingual pretrained encoder on English MNLI and tests it in every language of XNLI
# without another look (zero-shot); prints the paper's table 3 beside ours.
#
#   scripts/finetune-xnli.sh SYSTEM CHECKPOINT [more fairseq-train options]
#   scripts/finetune-xnli.sh diet-rel checkpoints/mlm.multi/diet_rel/checkpoint_best.pt
#   DRY_RUN=1 scripts/finetune-xnli.sh ...     prints the command of every run, does nothing
#
# DATA is made by data-prep/prepare-xnli.sh. Checkpoints and the learning rate are chosen on the
# English dev set of XNLI; then every test set counts with the median of the seeds. Adds rows, one
# for each run and language, to RESULTS/tasks/XNLI.jsonl. Run again, it continues where it was.
# Time: 20 runs over 393k examples; disk: a checkpoint a run. Licence of the data: CC BY-NC 4.0.
set -euo pipefail

DATA=${DATA:-data/XNLI}

# shellcheck source=scripts/grid.sh
. "$(dirname "${BASH_SOURCE[0]}")/grid.sh"

use_grid 3 3
[ $# -ge 2 ] || die "usage: $0 SYSTEM CHECKPOINT [fairseq-train options]"
TASK=XNLI SYSTEM=${1//_/-} PRETRAINED=$2
CHECKPOINTS=${CHECKPOINTS:-checkpoints/XNLI/$SYSTEM.$SEGMENTS}
[ -d "$DATA/input0" ] || die "$DATA: not there; run data-prep/prepare-xnli.sh"
SPLITS=valid_en
for file in "$DATA"/input0/test_*.idx; do SPLITS+=" $(basename "$file" .idx)"; done

run_grid "${@:3}"
"$PYTHON" -m diet_mt leaderboard "$RESULTS/tasks/XNLI.jsonl"
