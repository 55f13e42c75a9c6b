#!/usr/bin/env bash
# Questions and contexts as overlapping windows of subwords, for a pretrained model.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-qa.sh --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \
#            --vocab data/mlm.multi/bin
set -euo pipefail

diet-mt prepare qa \
  --out data/SQuAD \
  --max-tokens 512 --stride 128 --max-question 64 \
  "$@"
