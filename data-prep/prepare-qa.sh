#!/usr/bin/env bash
# Questions and contexts as windows of subwords of a pretrained model.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-qa.sh --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \
#            --vocab data/mlm.multi/bin
set -euo pipefail

diet-mt prepare qa \
  --out data/SQuAD \
  --max-tokens 512 --stride 128 --max-question 64 \
  "$@"
