#!/usr/bin/env bash
# XNLI for zero-shot transfer of a pretrained multilingual model.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-xnli.sh --from xnli --mnli glue --vocab data/mlm.multi/bin
set -euo pipefail

diet-mt prepare xnli \
  --out data/XNLI \
  --max-length 512 \
  "$@"
