#!/usr/bin/env bash
# Questions and contexts as windows of subwords of a pretrained model, for scripts/finetune-qa.sh.
#
# Makes    $OUT/train, valid and test_COLLECTION_LANGUAGE, with VOCAB's dict.txt and tokenizer beside
# From     SQuAD's JSON, plain or .gz: TRAIN and VALID, from rajpurkar.github.io/SQuAD-explorer; folders
#          of official files to test on: XQUAD (xquad.de.json; github.com/google-deepmind/xquad), MLQA
#          (test-context-de-question-de.json; github.com/facebookresearch/MLQA), TYDIQA (gold passage,
#          a file for each language as in XTREME: tydiqa.fi.dev.json or finnish.dev.json, or as its
#          authors name it: tydiqa-goldp-dev-finnish.json)
#          VOCAB, the bin folder that data-prep/prepare-mlm.sh made
# Example  TRAIN=train-v1.1.json VALID=dev-v1.1.json XQUAD=xquad VOCAB=data/mlm.multi/bin \
#            data-prep/prepare-qa.sh
# Takes    a minute and 600 MB for SQuAD, seconds for each test set
# Licence  SQuAD, XQuAD: CC BY-SA 4.0; MLQA: CC BY-SA 3.0; TyDi QA: Apache 2.0
#
# Test sets can be added later, by another run. The sequence length is Chen et al.'s (2021, table 7,
# multilingual); the others are not printed there, and so are those of BERT's published code.
set -euo pipefail

TRAIN=${TRAIN:-}
VALID=${VALID:-}
XQUAD=${XQUAD:-}
MLQA=${MLQA:-}
TYDIQA=${TYDIQA:-}
VOCAB=${VOCAB:-}
OUT=${OUT:-data/SQuAD}
LANGUAGE=${LANGUAGE:-en}          # of TRAIN and VALID
MAX_TOKENS=${MAX_TOKENS:-512}     # of a window, question and special tokens included
STRIDE=${STRIDE:-128}             # subwords from the begin of a window to that of the next
MAX_QUESTION=${MAX_QUESTION:-64}  # subwords of a question; what is longer is cut
PYTHON=${PYTHON:-python3}
HERE=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck disable=SC2034  # for lib.sh, which without languages says the sizes of folders in KiB
SRC=''

# make_split LANGUAGE SCORING FILE [OPTION...] TO
make_split() {
  local language=$1 scoring=$2 file=$3 to=${*: -1}
  local -a more=("${@:4:$#-4}")
  rm -rf "$to"
  data bert.questions.prepare --vocab "$VOCAB" --out "$to" --language "$language" --scoring "$scoring" \
    --max-tokens "$MAX_TOKENS" --stride "$STRIDE" --max-question "$MAX_QUESTION" "${more[@]}" "$file"
}

# questions SPLIT LANGUAGE SCORING FILE [OPTION...]: a stage; where it was made before, of this file.
questions() {
  [ ! -e "$OUT/$1" ] || data bert.questions.prepare --vocab "$VOCAB" --out "$OUT/$1" --check "$4"
  stage "$1" make_split "${@:2}"
}

# make_copy FILE TO
make_copy() { cp "$1" "$2" || die "$2: cannot be written; make room and run again"; }

[ $# = 0 ] || die "usage: TRAIN=... VALID=... VOCAB=... $0"
for name in TRAIN VALID VOCAB; do
  [ -n "${!name}" ] || die "set $name, as in: TRAIN=train-v1.1.json VALID=dev-v1.1.json VOCAB=data/mlm/bin $0"
done
need awk df du grep
need_positive MAX_TOKENS STRIDE MAX_QUESTION
need_python numpy sentencepiece tokenizers
[ -f "$VOCAB/dict.txt" ] || die "$VOCAB: no dict.txt; set VOCAB to the bin folder that data-prep/prepare-mlm.sh made"
tokenizer=$(cd "$VOCAB" && ls wordpiece.json spm.model 2>/dev/null) || true
[ "$(wc -w <<<"$tokenizer")" = 1 ] ||
  die "$VOCAB: should hold one of wordpiece.json and spm.model, beside its dict.txt"
tests=$(data bert.questions.collections ${XQUAD:+--xquad "$XQUAD"} ${MLQA:+--mlqa "$MLQA"} ${TYDIQA:+--tydiqa "$TYDIQA"}) || exit 2

# The vocabulary by its content: a folder of the same name may hold another one.
settings="TRAIN=$TRAIN VALID=$VALID LANGUAGE=$LANGUAGE MAX_TOKENS=$MAX_TOKENS STRIDE=$STRIDE"
begin "$settings MAX_QUESTION=$MAX_QUESTION vocabulary=$(cat "$VOCAB/dict.txt" "$VOCAB/$tokenizer" | cksum | tr ' ' -)"
stage dict.txt make_copy "$VOCAB/dict.txt"
stage "$tokenizer" make_copy "$VOCAB/$tokenizer"
questions train "$LANGUAGE" squad "$TRAIN" --train
questions valid "$LANGUAGE" squad "$VALID"
while IFS=$'\t' read -r split language scoring file; do
  [ -z "$split" ] || questions "$split" "$language" "$scoring" "$file"
done <<<"$tests"
say "ready: $OUT"
