#!/usr/bin/env bash
# Questions and contexts as windows of subwords of a pretrained model.
#
# Makes    data/SQuAD/train, valid and test_COLLECTION_LANGUAGE, with dict.txt and the tokenizer beside
# From     SQuAD's JSON, plain or .gz, from rajpurkar.github.io/SQuAD-explorer; folders of official files to
#          test on: --xquad (xquad.de.json; github.com/google-deepmind/xquad), --mlqa
#          (test-context-de-question-de.json; github.com/facebookresearch/MLQA), --tydiqa (gold passage,
#          a file for each language: tydiqa.fi.dev.json or finnish.dev.json, or as its authors name it:
#          tydiqa-goldp-dev-finnish.json); the vocabulary of data-prep/prepare-mlm.sh
# Example  data-prep/prepare-qa.sh --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \
#            --vocab data/mlm.multi/bin
# Takes    a minute and 600 MB for SQuAD, seconds for each test set
# Licence  SQuAD, XQuAD: CC BY-SA 4.0; MLQA: CC BY-SA 3.0; TyDi QA: Apache 2.0
#
# Test sets can be added later, by another run. The sequence length is Chen et al.'s (2021, table 7,
# multilingual); the others are not printed there, and so are those of BERT's published code.
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare qa \
  --out data/SQuAD \
  --max-tokens 512 --stride 128 --max-question 64 \
  "$@"
