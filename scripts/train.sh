#!/usr/bin/env bash
# Trains one translation model with fairseq-train.
#
#   scripts/train.sh BIN ARCH SEED SAVE_DIR [more fairseq-train options]
#   scripts/train.sh data/multi30k.en-de/bin diet_rel_tiny 1 checkpoints/diet_rel.1
#
# BIN: folder made by fairseq-preprocess; ARCH: <encoding>_<size>. Trains with a joined dictionary and
# shared embeddings and keeps checkpoint_best.pt (validation loss) and checkpoint_last.pt. Run again,
# it continues from the last one; a finished training is left alone, and one begun with another
# command is refused. DRY_RUN=1 prints the command and does nothing. On Multi30k and two processor
# cores a tiny model takes about 32 minutes with one thread, two of them side by side.
set -euo pipefail

# Settings: the defaults are the recipe of the Multi30k comparison.
MAX_EPOCH=${MAX_EPOCH:-15}
MAX_UPDATE=${MAX_UPDATE:-}         # updates; given, it ends the training in the place of MAX_EPOCH
MAX_TOKENS=${MAX_TOKENS:-4096}     # tokens in a batch, of the longer side
UPDATE_FREQ=${UPDATE_FREQ:-}       # batches of each process in one update
LR=${LR:-0.005}                    # peak, after
WARMUP=${WARMUP:-1000}             # updates
ADAM_BETAS="${ADAM_BETAS:-(0.9, 0.98)}"
ADAM_EPS=${ADAM_EPS:-}
CLIP_NORM=${CLIP_NORM:-}           # of the gradient; 0: as long as it is
DROPOUT=${DROPOUT:-0.3}
ATTENTION_DROPOUT=${ATTENTION_DROPOUT:-}
ACTIVATION_DROPOUT=${ACTIVATION_DROPOUT:-}
LABEL_SMOOTHING=${LABEL_SMOOTHING:-0.1}
PRECISION=${PRECISION:-fp32}       # or fp16, bf16
LOG_INTERVAL=${LOG_INTERVAL:-50}   # updates
SAVE_EVERY=${SAVE_EVERY:-}         # updates; given, validates and saves then and not after each epoch,
KEEP=${KEEP:-1}                    # and keeps so many of those checkpoints
SOURCE_LANG=${SOURCE_LANG:-}         # default: as the names of the data say
TARGET_LANG=${TARGET_LANG:-}
PROCESSES=${PROCESSES:-}           # of the whole training; default: one for each GPU of this machine

# shellcheck source=scripts/messages.sh
. "$(dirname "${BASH_SOURCE[0]}")/messages.sh"
# shellcheck source=scripts/corpus.sh
. "$(dirname "${BASH_SOURCE[0]}")/corpus.sh"
# shellcheck source=scripts/training.sh
. "$(dirname "${BASH_SOURCE[0]}")/training.sh"

[ $# -ge 4 ] || die "usage: $0 BIN ARCH SEED SAVE_DIR [fairseq-train options]"
bin=$1 arch=$2 seed=$3 save=$4
shift 4
need_bin "$bin"
root=$(cd "$(dirname "$0")/.." && pwd)

if [ -n "$MAX_UPDATE" ]; then until=(--max-update "$MAX_UPDATE"); else until=(--max-epoch "$MAX_EPOCH"); fi
use_precision "$PRECISION"
save_every "$SAVE_EVERY" "$KEEP"
# Multiple 1: one distribution of fairseq drops the last sentences otherwise.
command=(
  fairseq-train "$bin" --user-dir "$root/diet_mt" --arch "$arch" --share-all-embeddings
  --optimizer adam --adam-betas "$ADAM_BETAS"
  --lr "$LR" --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP"
  --dropout "$DROPOUT" --criterion label_smoothed_cross_entropy --label-smoothing "$LABEL_SMOOTHING"
  --max-tokens "$MAX_TOKENS" "${until[@]}" --required-batch-size-multiple 1
  --seed "$seed" --save-dir "$save" --no-epoch-checkpoints
  --log-format simple --log-interval "$LOG_INTERVAL"
  ${SOURCE_LANG:+--source-lang "$SOURCE_LANG"} ${TARGET_LANG:+--target-lang "$TARGET_LANG"}
  ${UPDATE_FREQ:+--update-freq "$UPDATE_FREQ"} ${ADAM_EPS:+--adam-eps "$ADAM_EPS"}
  ${CLIP_NORM:+--clip-norm "$CLIP_NORM"}
  ${ATTENTION_DROPOUT:+--attention-dropout "$ATTENTION_DROPOUT"}
  ${ACTIVATION_DROPOUT:+--activation-dropout "$ACTIVATION_DROPOUT"}
  ${PROCESSES:+--distributed-world-size "$PROCESSES"}
  "${precision[@]}" "${intervals[@]}"
  "$@"
)
run_training "$root" "$save" "${command[@]}"
