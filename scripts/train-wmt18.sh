#!/usr/bin/env bash
# Trains one system of the paper's translation table, in the paper's setting, on the data of
# data-prep/prepare-wmt18.sh.
#
#   scripts/train-wmt18.sh DIRECTION SYSTEM [more fairseq-train options]
#   scripts/train-wmt18.sh en-de diet_rel                    on all GPUs of this machine
#   SETTING=vaswani AVERAGE=5 scripts/train-wmt18.sh cs-en sinusoidal
#   DRY_RUN=1 scripts/train-wmt18.sh en-de shaw              prints the command, does nothing
#   NODES=2 NODE_RANK=0 MASTER=HOST:29500 scripts/...        on HOST, the first of two machines
#   srun --nodes 2 --ntasks-per-node 1 --gpus-per-node 8 scripts/...      on each of two, under Slurm
#
# DIRECTION: en-de, de-en, en-cs, cs-en; SYSTEM: diet_rel, sinusoidal, shaw or any other encoding. An
# update sees the same tokens whatever the number of GPUs. Run again, it continues; finished, it does
# nothing. scripts/evaluate.sh decodes and scores. Time: an estimated day on one recent GPU. Disk:
# (3 + AVERAGE) x 0.8 GB. The data have licences of their own. More: docs/training-wmt18.md
set -euo pipefail

SETTING=${SETTING:-t2t}             # Tensor2Tensor's base model, or vaswani: that paper as printed
SIZE=${SIZE:-base}
SEED=${SEED:-1}
GLOBAL_BATCH=${GLOBAL_BATCH:-25000} # tokens of an update, of the longer side, on all GPUs together
MAX_TOKENS=${MAX_TOKENS:-8192}      # that fit on one GPU at a time; GPUS, PRECISION, NODES: devices.sh
AVERAGE=${AVERAGE:-0}               # checkpoints to average in the end, SAVE_EVERY apart; 0: none
VALID_BEAM=${VALID_BEAM:-4}         # of the validation's BLEU; 0: none, the best is that of lowest loss
LENGTH_PENALTY=${LENGTH_PENALTY:-fairseq} # of that BLEU: fairseq or gnmt
export MAX_UPDATE=${MAX_UPDATE:-250000} SAVE_EVERY=${SAVE_EVERY:-5000} LOG_INTERVAL=${LOG_INTERVAL:-100}

HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/devices.sh
. "$HERE/devices.sh"
# shellcheck source=scripts/corpus.sh
. "$HERE/corpus.sh"

# default NAME VALUE: what train.sh reads as NAME, unless the user has set it.
default() { export "$1=${!1:-$2}"; }

need_numbers AVERAGE VALID_BEAM
[ $# -ge 2 ] || die "usage: $0 DIRECTION SYSTEM [fairseq-train options]"
direction=$1 system=${2//-/_}
shift 2
[[ $direction =~ ^[a-z]+-[a-z]+$ ]] || die "direction '$direction': give two languages, as in en-de"
[[ $system =~ ^[a-z0-9_]+$ ]] || die "system '$system': give the name of an encoding, as in diet_rel"
export SOURCE_LANG=${direction%-*} TARGET_LANG=${direction#*-}
other=$SOURCE_LANG
[ "$other" != en ] || other=$TARGET_LANG
DATA=${DATA:-data/wmt18.$other-en}
ARCH=${ARCH:-${system}_$SIZE}
bin=$DATA/bin
need_bin "$bin"
subwords=$(subwords_of "$bin") pieces=
[ "$subwords" = bpe ] || pieces=.$subwords
SAVE_DIR=${SAVE_DIR:-checkpoints/wmt18.$direction$pieces.$SETTING/$system.$SEED}
case $subwords in
  bpe) bleu=(--eval-bleu-remove-bpe --eval-bleu-detok moses
    --eval-bleu-detok-args "{\"target_lang\": \"$TARGET_LANG\"}") ;;
  spm) bleu=(--eval-bleu-remove-bpe sentencepiece) ;;
esac
bleu+=(--eval-bleu --best-checkpoint-metric bleu --maximize-best-checkpoint-metric --eval-bleu-args
  "{\"beam\": $VALID_BEAM, \"lenpen\": 0.6, \"max_len_a\": 1.2, \"max_len_b\": 10}")
[ "$VALID_BEAM" -gt 0 ] || bleu=()

# Both settings: Adam, inverse square root, label smoothing 0.1, no gradient clipping.
default LABEL_SMOOTHING 0.1
default DROPOUT 0.1
default ADAM_EPS 1e-9
default CLIP_NORM 0
case $SETTING in
  t2t)
    default ADAM_BETAS "(0.9, 0.997)"
    default LR 0.000988 # 2 x 512^-0.5 x 8000^-0.5
    default WARMUP 8000
    default ATTENTION_DROPOUT 0.1
    default ACTIVATION_DROPOUT 0.1
    setting=(--encoder-normalize-before --decoder-normalize-before)
    ;;
  vaswani)
    default ADAM_BETAS "(0.9, 0.98)"
    default LR 0.000699 # 512^-0.5 x 4000^-0.5
    default WARMUP 4000
    setting=() ;;
  *) die "SETTING '$SETTING': choose t2t or vaswani" ;;
esac
read -r -a own <<<"$(sed -n "s/^$SETTING $system //p" "$HERE/wmt18-options")"

share_update train-wmt18 tokens "$GLOBAL_BATCH" "$MAX_TOKENS"
export MAX_TOKENS=$BATCH UPDATE_FREQ PRECISION PROCESSES KEEP=$((AVERAGE > 0 ? AVERAGE : 1))
"$HERE/train.sh" "$bin" "$ARCH" "$SEED" "$SAVE_DIR" \
  --task diet_translation --length-penalty "$LENGTH_PENALTY" "${bleu[@]}" \
  --tensorboard-logdir "$SAVE_DIR/tensorboard" "${setting[@]}" "${own[@]}" "$@"

average=$SAVE_DIR/checkpoint_average.pt
if [ -z "${DRY_RUN:-}" ] && [ "$AVERAGE" -gt 0 ] && [ "$NODE_RANK" = 0 ] && [ ! -f "$average" ]; then
  "$PYTHON" -m diet_mt average --last "$AVERAGE" --dir "$SAVE_DIR" --out "$average" >&2
fi
