#!/usr/bin/env bash
# The nine tasks of GLUE as subwords of a pretrained model and in fairseq's form.
#
# Makes    data/glue/TASK/raw, pieces, input0, input1 and label: splits train, valid, test; MNLI's mismatched
#          sets are valid1 and test1. Test files have no labels, as published
# From     the official files, TASK/*.tsv, plain or .gz, from gluebenchmark.com; the vocabulary of
#          data-prep/prepare-mlm.sh
# Example  data-prep/prepare-glue.sh --from glue --vocab data/mlm.en/bin
# Takes    seconds for small tasks, some minutes for MNLI; 2 GB of disk for all
# Licence  each task's own; most are for research alone
#
# One task: its name in the place of all. All options: diet-mt prepare glue --help
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare glue all \
  --max-length 128 \
  "$@"
