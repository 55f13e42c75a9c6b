#!/usr/bin/env bash
# Pretrains an encoder as a masked language model, in the paper's setting (Chen et al. 2021, Table 7),
# on the data of data-prep/prepare-mlm.sh.
#
#   scripts/pretrain.sh SYSTEM [more fairseq-train options]
#   DATA=data/mlm.en scripts/pretrain.sh diet_rel            on all GPUs of this machine
#   SETTING=multilingual DATA=data/mlm.xx scripts/pretrain.sh diet_abs
#   SIZE=tiny MAX_UPDATE=2000 SAVE_EVERY=200 GLOBAL_BATCH=64 LR=0.001 scripts/pretrain.sh learned
#   DRY_RUN=1 scripts/pretrain.sh shaw                       prints the command, does nothing
#
# SYSTEM: learned, diet_rel, diet_abs or any other encoding. An update sees the same number of
# sequences whatever the number of GPUs; several machines as with scripts/train-wmt18.sh. Run again,
# it continues; finished, it does nothing. Segments come in when fine-tuning (Chen et al., appendix A).
# Time: weeks on one recent GPU for the base size (estimated). Disk: (3 + KEEP) x 1.3 GB. The text has
# licences of its own.
#
# From the paper: updates, peak learning rate, share of warm-up (0.025), length, sequences in an
# update, interval of checkpoints; no next-sentence loss; full sentences, packed. Not printed there,
# and so from BERT (Devlin et al. 2018, A.2, and its code): Adam with 0.9 and 0.999, weight decay 0.01,
# linear decay, dropout 0.1, gradients clipped to 1, and what is masked: 15%, of which 80% as <mask>,
# 10% as another word, 10% as it is (but fairseq decays all weights, and BERT spares layer norms and
# biases). The optimizer itself is not printed either. 0.0018, 4,096 and 125k are what Lan et al.
# (2020, section 4.1) train with by LAMB: OPTIMIZER=lamb is fairseq's, which needs a GPU and apex;
# Adam may want a smaller LR in the base size.
#
# BREAK=complete_doc packs full sentences of one document, and no sequence crosses its end. complete
# goes on with the next document behind an additional </s>, as RoBERTa does (Liu et al. 2019, 4.2).
set -euo pipefail

SETTING=${SETTING:-english}
DATA=${DATA:-data/mlm}
SIZE=${SIZE:-base}             # tiny, small, base
SEED=${SEED:-1}                # of the masks, too: curves are comparable within one seed
SEGMENTS=${SEGMENTS:-none}     # none, input or per-head
case $SETTING in
  english) LENGTH=${LENGTH:-128} MAX_UPDATE=${MAX_UPDATE:-500000} ;;
  multilingual) LENGTH=${LENGTH:-512} MAX_UPDATE=${MAX_UPDATE:-125000} ;;
esac                           # LENGTH: pieces in a sequence, <s> included
POSITIONS=${POSITIONS:-512}    # that the tables have, for longer sequences in fine-tuning
GLOBAL_BATCH=${GLOBAL_BATCH:-4096}     # sequences of an update, on all devices together
BATCH=${BATCH:-}               # that fit on one at a time; 32,768 pieces. GPUS, PRECISION, NODES: devices.sh
LR=${LR:-0.0018}               # peak
WARMUP=${WARMUP:-}             # updates; 0.025 of all
OPTIMIZER=${OPTIMIZER:-adam}
ADAM_BETAS="${ADAM_BETAS:-(0.9, 0.999)}"
ADAM_EPS=${ADAM_EPS:-1e-6}
WEIGHT_DECAY=${WEIGHT_DECAY:-0.01}
CLIP_NORM=${CLIP_NORM:-1}
DROPOUT=${DROPOUT:-0.1}
ATTENTION_DROPOUT=${ATTENTION_DROPOUT:-0.1}
BREAK=${BREAK:-complete_doc}
MASK_PROB=${MASK_PROB:-0.15}
SAVE_EVERY=${SAVE_EVERY:-20000} # updates; validates and saves
KEEP=${KEEP:-1}                # of those checkpoints
LOG_INTERVAL=${LOG_INTERVAL:-100}

HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/devices.sh
. "$HERE/devices.sh"
# shellcheck source=scripts/corpus.sh
. "$HERE/corpus.sh"
# shellcheck source=scripts/training.sh
. "$HERE/training.sh"

[ $# -ge 1 ] || die "usage: $0 SYSTEM [fairseq-train options]"
[[ $SETTING =~ ^(english|multilingual)$ ]] || die "SETTING '$SETTING': choose english or multilingual"
system=${1//-/_}
shift
[[ $system =~ ^[a-z0-9_]+$ ]] || die "system '$system': give the name of an encoding, as in diet_rel"
need_positive LENGTH POSITIONS MAX_UPDATE GLOBAL_BATCH SAVE_EVERY KEEP
BATCH=${BATCH:-$((32768 / LENGTH))} WARMUP=${WARMUP:-$((MAX_UPDATE / 40))}
need_positive BATCH
need_numbers WARMUP
[ "$LENGTH" -le "$POSITIONS" ] || die "LENGTH=$LENGTH: longer than the $POSITIONS positions of the model"
bin=$DATA/bin
need_bin "$bin"
if [ -f "$bin/max-length" ] && [ "$(cat "$bin/max-length")" -gt "$LENGTH" ]; then
  die "LENGTH=$LENGTH: $bin has sentences of up to $(cat "$bin/max-length") pieces; prepare it with MAX_LENGTH=$LENGTH"
fi
SAVE_DIR=${SAVE_DIR:-checkpoints/mlm.$SETTING.$SIZE/$system.$SEED}
adam=()
[ "$OPTIMIZER" != adam ] || adam=(--adam-betas "$ADAM_BETAS" --adam-eps "$ADAM_EPS")
[ "$OPTIMIZER" != lamb ] || adam=(--lamb-betas "$ADAM_BETAS" --lamb-eps "$ADAM_EPS")
share_update pretrain sequences "$GLOBAL_BATCH" "$BATCH"
use_precision "$PRECISION"
save_every "$SAVE_EVERY" "$KEEP"

run_training "$HERE/.." "$SAVE_DIR" \
  fairseq-train "$bin" --user-dir "$(cd "$HERE/../diet_mt" && pwd)" \
  --task masked_lm --criterion masked_lm --arch "roberta_${system}_$SIZE" \
  --sample-break-mode "$BREAK" --tokens-per-sample "$LENGTH" --max-source-positions "$POSITIONS" \
  --segment-encoding "$SEGMENTS" --mask-prob "$MASK_PROB" \
  --optimizer "$OPTIMIZER" "${adam[@]}" --weight-decay "$WEIGHT_DECAY" --clip-norm "$CLIP_NORM" \
  --lr "$LR" --lr-scheduler polynomial_decay --warmup-updates "$WARMUP" \
  --total-num-update "$MAX_UPDATE" --max-update "$MAX_UPDATE" \
  --dropout "$DROPOUT" --attention-dropout "$ATTENTION_DROPOUT" \
  --batch-size "$BATCH" --update-freq "$UPDATE_FREQ" --required-batch-size-multiple 1 \
  --distributed-world-size "$PROCESSES" "${precision[@]}" "${intervals[@]}" \
  --seed "$SEED" --save-dir "$SAVE_DIR" --no-epoch-checkpoints \
  --log-format json --log-interval "$LOG_INTERVAL" "$@"
