#!/usr/bin/env bash
# WMT18 news, the data of the paper's table 4. The argument is the direction: en-de, de-en, en-cs or cs-en.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-wmt18.sh en-de --from archives
set -euo pipefail

diet-mt prepare wmt18 \
  --downloads data/wmt18.archives \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 32000 --dictionary 32768 \
  "$@"
