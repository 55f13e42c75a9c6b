#!/usr/bin/env bash
# Multi30k (image captions) as a translation corpus for fairseq.
#
# Makes    $OUT/raw   the untouched sentences (references for scoring)
#          $OUT/tok   Moses tokens;  $OUT/bpe.codes, $OUT/bpe   joint byte-pair encoding
#          $OUT/bin   what fairseq-train and fairseq-generate read
# From     task 1 of github.com/multi30k/dataset, test set test_2016_flickr: taken from the folder
#          $MULTI30K_DIR if that is set (train.en or train.en.gz, ...), downloaded otherwise
# Example  data-prep/prepare-multi30k.sh            (English to German)
#          data-prep/prepare-multi30k.sh en-cs      (any pair of en, de, cs)
# Takes    about a minute, 30 MB of disk
# Licence  the source carries none; captions derive from Flickr30k: for research use
set -euo pipefail

PAIR=${1:-en-de}
SRC=${PAIR%-*}
TGT=${PAIR#*-}
OUT=${OUT:-data/multi30k.$SRC-$TGT}
BPE_MERGES=${BPE_MERGES:-6000}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
FETCH=${FETCH:---tries 5 --pause 5}                     # of a download; pause in seconds
HERE=$(cd "$(dirname "$0")" && pwd)
MANIFEST=${MULTI30K_MANIFEST:-$HERE/multi30k.manifest}  # pins every file by its SHA-256
URL=${MULTI30K_URL:-https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw}
SETTINGS=                                               # no others that OUT depends on

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck source=data-prep/stages.sh
. "$HERE/stages.sh"

case $PAIR in -h | --help) header && exit 0 ;; esac

# make_raw DIR: the six files, checked against the manifest, under the names of their splits.
make_raw() {
  local origin=(--url "$URL") lang patience
  read -r -a patience <<<"$FETCH"
  [ -z "${MULTI30K_DIR:-}" ] || origin=(--folder "$MULTI30K_DIR")
  data corpora.fetch --manifest "$MANIFEST" "${origin[@]}" "${patience[@]}" --out "$OUT/fetched" \
    {train,val,test_2016_flickr}.{"$SRC","$TGT"} >/dev/null
  mkdir -p "$1"
  for lang in "$SRC" "$TGT"; do
    cp "$OUT/fetched/train.$lang" "$1/train.$lang"
    cp "$OUT/fetched/val.$lang" "$1/valid.$lang"
    cp "$OUT/fetched/test_2016_flickr.$lang" "$1/test.$lang"
  done
  data corpus "$1" "$SRC" "$TGT" >/dev/null
}

[[ $PAIR =~ ^(en|de|cs)-(en|de|cs)$ && $SRC != "$TGT" ]] ||
  die "language pair '$PAIR': give two of en, de, cs, as in en-de"
check_setup
stage raw make_raw
rm -rf "$OUT/fetched"
prepare
