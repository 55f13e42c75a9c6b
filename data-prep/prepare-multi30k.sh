#!/usr/bin/env bash
# Multi30k (image captions), English to German. Other pairs of en, de, cs: in the place of en-de.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-multi30k.sh --from multi30k
set -euo pipefail

diet-mt prepare multi30k en-de \
  --out data/multi30k.en-de \
  --subwords bpe --bpe-merges 6000 \
  "$@"
