#!/usr/bin/env bash
# The demo corpus: generated English-German sentences in which word order carries the meaning.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-demo.sh --train-pairs 5000 --out data/demo5k
set -euo pipefail

diet-mt prepare demo \
  --out data/demo.en-de \
  --train-pairs 20000 --valid-pairs 500 --test-pairs 500 \
  --subwords bpe --bpe-merges 1500 \
  "$@"
