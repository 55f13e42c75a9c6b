#!/usr/bin/env bash
# Trains one translation model with fairseq-train.
#
#   scripts/train.sh BIN ARCH SEED SAVE_DIR [more fairseq-train options]
#   scripts/train.sh data/multi30k.en-de/bin diet_rel_tiny 1 checkpoints/diet_rel.1
#
# BIN: folder made by fairseq-preprocess; ARCH: <encoding>_<size>. Trains with a joined dictionary and
# shared embeddings and keeps checkpoint_best.pt (validation loss) and checkpoint_last.pt. Run again,
# it continues from the last one; a finished training is left alone, and one begun with another
# command is refused. On Multi30k and two processor cores a tiny model takes about 32 minutes with
# one thread, two of them side by side.
set -euo pipefail

# Settings: the defaults are the recipe of the Multi30k comparison.
MAX_EPOCH=${MAX_EPOCH:-15}
MAX_TOKENS=${MAX_TOKENS:-4096}     # tokens in a batch, of the longer side
LR=${LR:-0.005}                    # peak, after
WARMUP=${WARMUP:-1000}             # updates
DROPOUT=${DROPOUT:-0.3}
LABEL_SMOOTHING=${LABEL_SMOOTHING:-0.1}
LOG_INTERVAL=${LOG_INTERVAL:-50}   # updates

# shellcheck source=scripts/messages.sh
. "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

[ $# -ge 4 ] || die "usage: $0 BIN ARCH SEED SAVE_DIR [fairseq-train options]"
bin=$1 arch=$2 seed=$3 save=$4
shift 4
[ -f "$bin/preprocess.log" ] || die "$bin holds no data made by fairseq-preprocess"
root=$(cd "$(dirname "$0")/.." && pwd)

# Multiple 1: one distribution of fairseq drops the last sentences otherwise.
command=(
  fairseq-train "$bin" --user-dir "$root/diet_mt" --arch "$arch" --share-all-embeddings
  --optimizer adam --adam-betas "(0.9, 0.98)"
  --lr "$LR" --lr-scheduler inverse_sqrt --warmup-updates "$WARMUP"
  --dropout "$DROPOUT" --criterion label_smoothed_cross_entropy --label-smoothing "$LABEL_SMOOTHING"
  --max-tokens "$MAX_TOKENS" --max-epoch "$MAX_EPOCH" --required-batch-size-multiple 1
  --seed "$seed" --save-dir "$save" --no-epoch-checkpoints
  --log-format simple --log-interval "$LOG_INTERVAL"
  "$@"
)
now=$(printf '%q ' "${command[@]}")
# The checkout itself may have moved.
without_checkout() { sed 's/--user-dir [^ ]*//'; }
if [ -f "$save/command" ] &&
  [ "$(without_checkout <"$save/command")" != "$(without_checkout <<<"$now")" ]; then
  die "$save was begun with another command (see $save/command); remove it or choose another folder"
fi
if [ -f "$save/done" ]; then
  echo "train: $save is finished"
  exit 0
fi
mkdir -p "$save"
printf '%s' "$now" >"$save/command"
[ -f "$save/revision" ] ||
  git -C "$root" describe --always --dirty >"$save/revision" 2>/dev/null || true
"${command[@]}" 2>&1 | tee -a "$save/train.log"
touch "$save/done"
