#!/usr/bin/env bash
# Fine-tunes a pretrained encoder on one task of GLUE, on XNLI or on SQuAD, once.
#
#   scripts/finetune.sh DATA CHECKPOINT SEED SAVE_DIR [more fairseq-train options]
#   scripts/finetune.sh data/glue/CoLA checkpoints/mlm/diet_rel/checkpoint_best.pt 1 checkpoints/cola.1
#
# DATA: made by data-prep/prepare-glue.sh, prepare-xnli.sh or prepare-qa.sh; CHECKPOINT: made by scripts/pretrain.sh.
# Keeps checkpoint_best.pt, by the task's main metric on its (first) dev set. Run again, it continues;
# a finished run is left alone. DRY_RUN=1 prints the command and does nothing. A tiny model on CoLA
# takes some 20 seconds an epoch on one core. Licence of the data: each task's own.
set -euo pipefail

# Settings: the paper's, appendix A, table 7. It does not print those from ADAM_BETAS on, which are
# BERT's (Devlin et al. 2018, appendix A.3).
LR=${LR:-3e-5}                     # peak; table 7: 1e-5, 2e-5, 3e-5 or 4e-5
EPOCHS=${EPOCHS:-5}                # or 10; multilingual models: 3
BATCH=${BATCH:-32}                 # examples in an update
WARMUP_PROPORTION=${WARMUP_PROPORTION:-0.1} # of all updates; then linearly down to 0
INTERVAL=${INTERVAL:-3500}         # updates between checkpoints, beside those at the ends of epochs
ADAM_BETAS="${ADAM_BETAS:-(0.9, 0.999)}"
ADAM_EPS=${ADAM_EPS:-1e-6}
WEIGHT_DECAY=${WEIGHT_DECAY:-0.01}
CLIP_NORM=${CLIP_NORM:-1.0}
DROPOUT=${DROPOUT:-0.1}
SEGMENTS=${SEGMENTS:-per-head}     # none, input or per-head; a checkpoint without gets them at zero
TASK=${TASK:-}                     # default: the name of DATA
SYSTEM=${SYSTEM:-}                 # encoding that the checkpoint must have; empty: any
PRECISION=${PRECISION:-fp32}       # or fp16, bf16
LOG_INTERVAL=${LOG_INTERVAL:-50}   # updates
TASK_OPTIONS=${TASK_OPTIONS:-}     # of diet_mt.evaluation.finetuning, if they are known already
PYTHON=${PYTHON:-python3}

# shellcheck source=scripts/messages.sh
. "$(dirname "${BASH_SOURCE[0]}")/messages.sh"
# shellcheck source=scripts/numbers.sh
. "$(dirname "${BASH_SOURCE[0]}")/numbers.sh"
# shellcheck source=scripts/training.sh
. "$(dirname "${BASH_SOURCE[0]}")/training.sh"

[ $# -ge 4 ] || die "usage: $0 DATA CHECKPOINT SEED SAVE_DIR [fairseq-train options]"
data=$1 pretrained=$2 seed=$3 save=$4
shift 4
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -f "$data/train/about.json" ]; then
  examples=$(sed -n 's/.*"windows": *\([0-9]*\).*/\1/p' "$data/train/about.json")
  task=(--task extractive_qa --criterion extractive_qa)
  TASK=${TASK:-SQuAD}
elif [ -f "$data/raw/train.id" ]; then
  examples=$(wc -l <"$data/raw/train.id")
  task=(--task diet_sentence_prediction --criterion diet_sentence_prediction
    --init-token 0 --separator-token 2)
else
  die "$data: not made by data-prep/prepare-glue.sh, prepare-xnli.sh or prepare-qa.sh"
fi
[ -f "$pretrained" ] || die "$pretrained: no such checkpoint; pretrain first, with scripts/pretrain.sh"
need_positive BATCH EPOCHS
use_precision "$PRECISION"
[ -n "$TASK_OPTIONS" ] ||
  TASK_OPTIONS=$(PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -m diet_mt.evaluation.finetuning \
    "${TASK:-$(basename "$data")}" "$pretrained" --system "$SYSTEM")
mapfile -t options <<<"$TASK_OPTIONS"

in_epoch=$(((examples + BATCH - 1) / BATCH))
updates=$((in_epoch * EPOCHS))
warmup=$(awk -v n="$updates" -v share="$WARMUP_PROPORTION" 'BEGIN { printf "%d", n * share }')
# Multiple 1: one distribution of fairseq drops the last examples otherwise. One process: a run is
# small, and several run side by side.
command=(
  fairseq-train "$data" --user-dir "$root/diet_mt" --finetune-from-model "$pretrained"
  "${task[@]}" "${options[@]}" --maximize-best-checkpoint-metric
  --segment-encoding "$SEGMENTS" --dropout "$DROPOUT" --attention-dropout "$DROPOUT"
  --optimizer adam --adam-betas "$ADAM_BETAS" --adam-eps "$ADAM_EPS" --weight-decay "$WEIGHT_DECAY"
  --clip-norm "$CLIP_NORM" --lr "$LR" --lr-scheduler polynomial_decay
  --total-num-update "$updates" --warmup-updates "$warmup" --max-epoch "$EPOCHS"
  --batch-size "$BATCH" --required-batch-size-multiple 1 --distributed-world-size 1
  --seed "$seed" --save-dir "$save" --no-epoch-checkpoints --save-interval-updates "$INTERVAL"
  --validate-interval-updates "$INTERVAL" --keep-interval-updates 1
  --log-format simple --log-interval "$LOG_INTERVAL"
  "${precision[@]}"
  "$@"
)
run_training "$root" "$save" "${command[@]}"
