#!/usr/bin/env bash
# XNLI for zero-shot transfer, as subwords of a multilingual model and in fairseq's form.
#
# Makes    data/XNLI/raw, pieces, input0, input1 and label: train (MNLI's, in English), and valid_LANGUAGE
#          and test_LANGUAGE for each language; labels numbered as MNLI's
# From     *.dev.tsv and *.test.tsv, plain or .gz: the official files of 19 columns, and any other languages
#          in the same layout; GLUE's MNLI/train.tsv; the vocabulary of data-prep/prepare-mlm.sh
# Example  data-prep/prepare-xnli.sh --from xnli --mnli glue --vocab data/mlm.multi/bin
# Takes    some minutes, 1.5 GB of disk
# Licence  XNLI: CC BY-NC 4.0; MNLI: OANC and others
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare xnli \
  --out data/XNLI \
  --max-length 512 \
  "$@"
