#!/usr/bin/env bash
# Multi30k (image captions), English to German. Other pairs of en, de and cs replace en-de.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-multi30k.sh --from multi30k
set -euo pipefail

diet-mt prepare multi30k en-de \
  --out data/multi30k.en-de \
  --subwords bpe --bpe-merges 6000 \
  "$@"
