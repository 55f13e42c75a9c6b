#!/usr/bin/env bash
# Ten years of WMT's news test sets as a small corpus of real news, for a small machine.
#
# Makes    data/newstest.en-de/raw, clean (counts in clean.tsv), tok, bpe.codes, bpe and bin
# From     newstest2008 to 2015 for training, 2017 for validation, 2016 for testing: all from SacreBLEU,
#          or all from a folder
# Example  data-prep/prepare-newstest.sh
#          data-prep/prepare-newstest.sh --from news         newstest2008.en-de.en or .en.gz, ...
# Takes    a minute, 60 MB of disk
# Licence  WMT test sets: free for research
#
# English-Czech: en-cs in the place of en-de. All options: diet-mt prepare newstest --help
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare newstest en-de \
  --out data/newstest.en-de \
  --train-years 2008-2015 --valid-year 2017 --test-year 2016 \
  --max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9 \
  --subwords bpe --bpe-merges 6000 \
  "$@"
