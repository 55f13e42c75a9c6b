#!/usr/bin/env bash
# The nine tasks of GLUE for a pretrained model. One task: its name in the place of all.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-glue.sh --from glue --vocab data/mlm.en/bin
set -euo pipefail

diet-mt prepare glue all \
  --max-length 128 \
  "$@"
