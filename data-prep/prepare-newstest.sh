#!/usr/bin/env bash
# Ten years of WMT's news test sets as a small corpus. For English-Czech, replace en-de by en-cs.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-newstest.sh --from news
set -euo pipefail

diet-mt prepare newstest en-de \
  --out data/newstest.en-de \
  --train-years 2008-2015 --valid-year 2017 --test-year 2016 \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 6000 \
  "$@"
