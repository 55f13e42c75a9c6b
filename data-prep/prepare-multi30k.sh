#!/usr/bin/env bash
# Multi30k (image captions) as a translation corpus for fairseq.
#
# Makes    data/multi30k.en-de/raw  the untouched sentences (references for scoring)
#          tok, bpe.codes, bpe      Moses tokens, joint byte-pair codes
#          bin                      what fairseq-train and fairseq-generate read
# From     task 1 of github.com/multi30k/dataset, test set test_2016_flickr: downloaded, or from a folder
# Example  data-prep/prepare-multi30k.sh
#          data-prep/prepare-multi30k.sh --from multi30k     train.en or train.en.gz, val.en, ...
# Takes    half a minute, 30 MB of disk
# Licence  the source carries none; captions derive from Flickr30k: for research use
#
# Other pairs of en, de and cs: in the place of en-de. All options: diet-mt prepare multi30k --help
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare multi30k en-de \
  --out data/multi30k.en-de \
  --subwords bpe --bpe-merges 6000 \
  "$@"
