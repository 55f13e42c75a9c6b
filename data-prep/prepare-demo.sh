#!/usr/bin/env bash
# The demo corpus: generated English-German sentences in which word order carries the meaning.
#
# Makes    $OUT/raw, tok, bpe.codes, bpe and bin, as prepare-multi30k.sh does
# From     diet_mt/data/word_order.py: nothing is downloaded
# Example  data-prep/prepare-demo.sh        or        TRAIN_PAIRS=50000 OUT=data/demo50k data-prep/...
# Takes    half a minute, 20 MB of disk
# Licence  as this project
set -euo pipefail

SRC=en
TGT=de
OUT=${OUT:-data/demo.en-de}
TRAIN_PAIRS=${TRAIN_PAIRS:-20000}
VALID_PAIRS=${VALID_PAIRS:-500}
TEST_PAIRS=${TEST_PAIRS:-500}
CORPUS_SEED=${CORPUS_SEED:-1}
BPE_MERGES=${BPE_MERGES:-1500}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
SETTINGS="pairs=$TRAIN_PAIRS+$VALID_PAIRS+$TEST_PAIRS seed=$CORPUS_SEED"

# shellcheck source=data-prep/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=data-prep/stages.sh
. "$(dirname "$0")/stages.sh"

make_raw() {
  data corpora.word_order --out "$1" \
    --train "$TRAIN_PAIRS" --valid "$VALID_PAIRS" --test "$TEST_PAIRS" --seed "$CORPUS_SEED"
}

check_setup
stage raw make_raw
prepare
