#!/usr/bin/env bash
# Plain text as the corpus of a masked language model, as in Chen et al. 2021 for English.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-mlm.sh --train wiki.txt.gz books/*.gz --valid held-out.txt --out data/mlm.en
set -euo pipefail

diet-mt prepare mlm \
  --setting english --subwords wordpiece --vocab-size 30000 --max-length 128 \
  "$@"
