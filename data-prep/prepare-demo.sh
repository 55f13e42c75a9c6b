#!/usr/bin/env bash
# The demo corpus: generated English-German sentences in which word order carries the meaning.
#
# Makes    data/demo.en-de/raw, tok, bpe.codes, bpe and bin
# From     nothing: diet_mt/corpora/word_order.py makes the sentences
# Example  data-prep/prepare-demo.sh
#          data-prep/prepare-demo.sh --train-pairs 50000 --out data/demo50k
# Takes    a quarter of a minute, 20 MB of disk
# Licence  as this project
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare demo \
  --out data/demo.en-de \
  --train-pairs 20000 --valid-pairs 500 --test-pairs 500 --seed 1 \
  --subwords bpe --bpe-merges 1500 \
  "$@"
