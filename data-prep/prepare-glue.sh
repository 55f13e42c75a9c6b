#!/usr/bin/env bash
# One task of GLUE, or all of them, as subwords of a pretrained model and in fairseq's form.
#
# Makes    $OUT/TASK/{raw,pieces,input0,input1,label}: splits train, valid, test; MNLI's mismatched
#          sets are valid1 and test1. Test files have no labels, as published
# From     the official files: GLUE_DIR/TASK/*.tsv, gzipped or not (CoLA, SST-2, MRPC, STS-B, QQP,
#          MNLI, QNLI, RTE, WNLI), from gluebenchmark.com; VOCAB, the bin folder of prepare-mlm.sh
# Example  GLUE_DIR=glue VOCAB=data/mlm.en/bin data-prep/prepare-glue.sh CoLA      (or all)
# Takes    seconds for small tasks, some minutes for MNLI; 2 GB of disk for all
# Licence  each task's own; most are for research alone
set -euo pipefail

TASK=${1:-}
GLUE_DIR=${GLUE_DIR:-}
VOCAB=${VOCAB:-}
OUT=${OUT:-data/glue}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
HERE=$(cd "$(dirname "$0")" && pwd)
ALL="CoLA SST-2 MRPC STS-B QQP MNLI QNLI RTE WNLI"

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck source=data-prep/glue-stages.sh
. "$HERE/glue-stages.sh"

[ -n "$TASK" ] || die "usage: $0 TASK, one of $ALL, or all"
[ -n "$GLUE_DIR" ] || die "set GLUE_DIR to the folder of GLUE's official files, with CoLA/train.tsv"
[ -n "$VOCAB" ] || die "set VOCAB to the bin folder that data-prep/prepare-mlm.sh made"
if [ "$TASK" = all ]; then
  for task in $ALL; do "$0" "$task"; done
  exit
fi
[[ " $ALL " = *" $TASK "* ]] || die "task '$TASK': choose from $ALL, or all"
OUT=$OUT/$TASK

make_raw() { data bert.glue --folder "$GLUE_DIR" --bad-rows "$BAD_ROWS" --out "$1" "$TASK"; }

check_labelled "$TASK"
prepare_labelled
