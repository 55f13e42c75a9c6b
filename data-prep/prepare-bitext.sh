#!/usr/bin/env bash
# Your own parallel text. Replace de-fr by your languages.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-bitext.sh --from FOLDER
set -euo pipefail

diet-mt prepare bitext de-fr \
  --out data/bitext.de-fr \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 32000 --dictionary 32768 \
  "$@"
