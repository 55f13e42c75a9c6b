#!/usr/bin/env bash
# Parallel text of your own. Other languages in the place of de-fr.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-bitext.sh --from FOLDER
set -euo pipefail

diet-mt prepare bitext de-fr \
  --out data/bitext.de-fr \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 32000 --dictionary 32768 \
  "$@"
