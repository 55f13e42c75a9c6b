#!/usr/bin/env bash
# Plain text as the corpus of a masked language model.
#
# Makes    data/mlm/sentences, sample, wordpiece.json, pieces and bin; bin holds dict.txt and the tokenizer,
#          and is the --vocab of data-prep/prepare-glue.sh and the like
# From     text files, plain or .gz: a paragraph on a line, an empty line between documents
# Example  data-prep/prepare-mlm.sh --train wiki.txt.gz books/*.gz --valid held-out.txt --out data/mlm.en
# Takes    20 s of processor time and 35 MB for 1.5 million words; for the 3,300 million of English
#          Wikipedia and books an estimated 12 hours of one core, or one of sixteen, and 70 GB
# Licence  that of the text
#
# English, as in Chen et al. 2021. Several languages: --setting multilingual --subwords spm
# --vocab-size 120000 --max-length 512 --train de:de.gz cs:cs.gz --valid de:de.valid cs:cs.valid.
# All options: diet-mt prepare mlm --help
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare mlm \
  --setting english --subwords wordpiece --vocab-size 30000 --max-length 128 \
  "$@"
