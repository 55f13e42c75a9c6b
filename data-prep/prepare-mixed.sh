#!/usr/bin/env bash
# Captions, news and LibreOffice's texts as one corpus. For English-Czech, replace en-de by en-cs.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-mixed.sh --from downloads
set -euo pipefail

diet-mt prepare mixed en-de \
  --out data/mixed.en-de \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 8000 \
  "$@"
