#!/usr/bin/env bash
# LibreOffice's help and interface, English to German. Other pairs, such as en-cs, replace en-de.
# Options are passed on to the command; -h prints them, with inputs, outputs, time, disk and licence.
#
# Example  data-prep/prepare-office.sh --from office
set -euo pipefail

diet-mt prepare office en-de \
  --out data/office.en-de \
  --subwords bpe --bpe-merges 6000 \
  "$@"
