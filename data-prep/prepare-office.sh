#!/usr/bin/env bash
# LibreOffice's help and interface, English to German. Other pairs, such as en-cs: in the place of en-de.
# With -h: what it makes, from what; time, disk, licence, and further options, which are passed on.
#
# Example  data-prep/prepare-office.sh --from office
set -euo pipefail

diet-mt prepare office en-de \
  --out data/office.en-de \
  --subwords bpe --bpe-merges 6000 \
  "$@"
