#!/usr/bin/env bash
# The nine tasks of GLUE for a pretrained model. For one task, replace all by its name.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-glue.sh --from glue --vocab data/mlm.en/bin
set -euo pipefail

diet-mt prepare glue all \
  --max-length 128 \
  "$@"
