#!/usr/bin/env bash
# XNLI for zero-shot transfer of a pretrained multilingual model.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-xnli.sh --from xnli --mnli glue --vocab data/mlm.multi/bin
set -euo pipefail

diet-mt prepare xnli \
  --out data/XNLI \
  --max-length 512 \
  "$@"
