#!/usr/bin/env bash
# A dress rehearsal of diet-mt prepare wmt18 on made-up text.
#
# Makes    archives of the true layout, prepares them, and says how long each stage took and how much
#          memory; kills a second run once in the middle of every stage and lets it continue, which must
#          give the same data; works out what all 4.5 million pairs will take:
#          results/data-prep/bpe.jsonl, a line for each stage, and bpe.md, the table
# Example  tools/rehearse-data-prep.sh                     a million pairs, byte-pair codes
# Takes    ten minutes for the first run of a million pairs on two cores that have nothing else to do,
#          and 6 GB of disk in data/rehearsal; Linux only
#
# SentencePiece: spm in the place of bpe.
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

mkdir -p data/rehearsal results/data-prep
PYTHONPATH=. python3 -m tools.rehearsal --pairs 1000000 --subwords bpe --interrupt "$@" \
  data/rehearsal/bpe >data/rehearsal/bpe.report
grep '^{' data/rehearsal/bpe.report >results/data-prep/bpe.jsonl
grep -v '^{' data/rehearsal/bpe.report >results/data-prep/bpe.md
cat results/data-prep/bpe.md
