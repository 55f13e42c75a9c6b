#!/usr/bin/env bash
# The demo corpus: generated English-German sentences in which word order carries the meaning.
#
# Makes    $OUT/raw, tok, bpe.codes, bpe and bin, as prepare-multi30k.sh does
# From     diet_mt/data/word_order.py: nothing is downloaded
# Example  data-prep/prepare-demo.sh        or        TRAIN=50000 OUT=data/demo50k data-prep/...
# Takes    half a minute, 20 MB of disk
# Licence  as this project
set -euo pipefail

SRC=en
TGT=de
OUT=${OUT:-data/demo.en-de}
TRAIN=${TRAIN:-20000}
VALID=${VALID:-500}
TEST=${TEST:-500}
SEED=${SEED:-1}
BPE_MERGES=${BPE_MERGES:-1500}
WORKERS=${WORKERS:-2}
PYTHON=${PYTHON:-python3}
SETTINGS="TRAIN=$TRAIN VALID=$VALID TEST=$TEST SEED=$SEED"

# shellcheck source=data-prep/lib.sh
. "$(dirname "$0")/lib.sh"

make_raw() {
  py diet_mt.data.word_order --out "$1" \
    --train "$TRAIN" --valid "$VALID" --test "$TEST" --seed "$SEED"
}

check_setup
stage raw make_raw
prepare "$TRAIN" "$VALID" "$TEST"
