#!/usr/bin/env bash
# Captions, news and LibreOffice's texts as one corpus. English-Czech: en-cs in the place of en-de.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-mixed.sh --from downloads
set -euo pipefail

diet-mt prepare mixed en-de \
  --out data/mixed.en-de \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 8000 \
  "$@"
