#!/usr/bin/env bash
# XNLI for zero-shot transfer, as subwords of a multilingual model and in fairseq's form.
#
# Makes    $OUT/{raw,pieces,input0,input1,label}: train (MNLI's, in English), and valid_LANG and
#          test_LANG for each language; labels numbered as MNLI's
# From     XNLI_DIR/*.dev.tsv and *.test.tsv, gzipped or not: the official files of 19 columns, and
#          any other languages in the same layout; GLUE_DIR/MNLI/train.tsv; VOCAB, the bin folder of
#          prepare-mlm.sh
# Example  XNLI_DIR=xnli GLUE_DIR=glue VOCAB=data/mlm.multi/bin data-prep/prepare-xnli.sh
# Takes    some minutes, 1.5 GB of disk
# Licence  XNLI: CC BY-NC 4.0; MNLI: OANC and others
set -euo pipefail

XNLI_DIR=${XNLI_DIR:-}
GLUE_DIR=${GLUE_DIR:-}
VOCAB=${VOCAB:-}
OUT=${OUT:-data/XNLI}
MAX_LENGTH=${MAX_LENGTH:-512} # tokens of an example with its marks, as in pretraining (Chen et al., table 7)
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
HERE=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck source=data-prep/glue-stages.sh
. "$HERE/glue-stages.sh"

[ $# = 0 ] || die "usage: XNLI_DIR=... GLUE_DIR=... VOCAB=... $0"
[ -n "$XNLI_DIR" ] || die "set XNLI_DIR to the folder of XNLI's files, with xnli.dev.tsv"
[ -n "$GLUE_DIR" ] || die "set GLUE_DIR to the folder of GLUE's official files, with MNLI/train.tsv"
[ -n "$VOCAB" ] || die "set VOCAB to the bin folder that data-prep/prepare-mlm.sh made"

make_raw() {
  data bert.xnli --folder "$XNLI_DIR" --glue "$GLUE_DIR" --bad-rows "$BAD_ROWS" --out "$1"
}

check_labelled XNLI
prepare_labelled
