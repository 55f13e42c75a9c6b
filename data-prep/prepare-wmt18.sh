#!/usr/bin/env bash
# WMT18 news translation, German or Czech with English: the training data of the paper's Table 4.
#
# Makes    $OUT/archives  where the archives are;  $OUT/extracted  their files of this pair
#          $OUT/raw       training text; newstest2017 as valid; newstest2018 as test, untouched
#          $OUT/clean     the same, training pairs cleaned: the counts are in $OUT/clean.tsv
#          $OUT/tok, bpe.codes, bpe  Moses tokens and joint byte-pair codes;  or, with --subwords spm,
#          $OUT/spm.model, spm       SentencePiece on plain text
#          $OUT/bin       what fairseq reads, for both directions, with the subword model
# From     Europarl v7, Common Crawl, News Commentary v13 and the development sets (wmt18.manifest),
#          and newstest2018 from SacreBLEU: downloaded to $DOWNLOADS, or taken from a folder
# Usage    data-prep/prepare-wmt18.sh PAIR [--subwords bpe|spm] [--archives DIR]
#            PAIR            de-en or cs-en: one preparation serves both directions
#            --subwords      bpe (default; OUT is data/wmt18.PAIR) or spm (data/wmt18.PAIR.spm)
#            --archives DIR  take the archives from here, and SacreBLEU's as test.tgz; no network
# Example  data-prep/prepare-wmt18.sh de-en
# Takes    de-en: 1.7 GB of downloads, 10 GB of disk, 4 GB of memory; from what a million made-up pairs
#          took (scripts/rehearse-data-prep.sh, results/data-prep), some 40 minutes on two cores after
#          the downloads; cs-en: a quarter of the disk and time
# Licence  of the corpora: free for research; see statmt.org/wmt18/translation-task.html
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/messages.sh
. "$HERE/../scripts/messages.sh"

PAIR='' SUBWORDS=${SUBWORDS:-bpe} ARCHIVES=${ARCHIVES:-}
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) header && exit 0 ;;
    --subwords | --archives)
      [ -n "${2:-}" ] || die "$1 needs a value; -h shows the usage"
      [ "$1" = --subwords ] && SUBWORDS=$2 || ARCHIVES=$2
      shift 2
      ;;
    *)
      [[ -z $PAIR && $1 != -* ]] || die "$1: not understood; -h shows the usage"
      PAIR=$1
      shift
      ;;
  esac
done

SRC=${PAIR%-*}
TGT=${PAIR#*-}
suffix=${SUBWORDS#bpe}
OUT=${OUT:-data/wmt18.$PAIR${suffix:+.$suffix}}
DOWNLOADS=${DOWNLOADS:-data/wmt18.archives} # shared by both pairs
BPE_MERGES=${BPE_MERGES:-32000}
DICTIONARY=${DICTIONARY:-32768} # as in fairseq's WMT recipes
SPM_SIZE=${SPM_SIZE:-32000}
CLEAN=${CLEAN---max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
FETCH=${FETCH:---tries 5 --pause 5} # of a download; pause in seconds
MANIFEST=${WMT18_MANIFEST:-$HERE/wmt18.manifest}
CORPORA=(europarl-v7 commoncrawl news-commentary-v13)
SETTINGS=

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck source=data-prep/stages.sh
. "$HERE/stages.sh"

# make_archives FILE: a line "name, path" for each archive, once it is there and checked.
make_archives() {
  local origin=() patience names
  read -r -a patience <<<"$FETCH"
  names=(training-parallel-{europarl-v7,commoncrawl,nc-v13}.tgz dev.tgz)
  data corpora.testset cached wmt18 "$PAIR" || names+=(test.tgz)
  [ -z "$ARCHIVES" ] || origin=(--folder "$ARCHIVES")
  data corpora.fetch --manifest "$MANIFEST" "${origin[@]}" "${patience[@]}" --out "$DOWNLOADS" "${names[@]}" >"$1"
}

# look_again: forgets where the archives were, if they are needed and one is no longer there.
look_again() {
  local name path lost=
  [ -e "$OUT/archives" ] && [ ! -e "$OUT/raw" ] || return 0
  while IFS=$'\t' read -r name path || [ -n "$name" ]; do
    [ -f "$path" ] || lost=$name
  done <"$OUT/archives"
  [ -n "$lost" ] || [ ! -s "$OUT/archives" ] || return 0
  say "   ${lost:-an archive} is not where it was; looking for it again"
  rm "$OUT/archives"
}

# archive NAME: its path; empty if it was not needed.
archive() { awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$OUT/archives"; }

make_extracted() {
  local both paths dev=dev/newstest2017-$SRC$TGT
  mapfile -t paths < <(cut -f2 "$OUT/archives")
  room extracted "$(mib_of 75 "${paths[@]}")"
  both=("$PAIR".{"$SRC","$TGT"})
  data corpora.extract "$(archive training-parallel-nc-v13.tgz)" "$1" \
    "${both[@]/#/training-parallel-nc-v13/news-commentary-v13.}"
  data corpora.extract "$(archive training-parallel-europarl-v7.tgz)" "$1" "${both[@]/#/training/europarl-v7.}"
  data corpora.extract "$(archive training-parallel-commoncrawl.tgz)" "$1" "${both[@]/#/commoncrawl.}"
  data corpora.extract "$(archive dev.tgz)" "$1" "$dev-src.$SRC.sgm" "$dev-ref.$TGT.sgm"
}

make_raw() {
  local stems=() corpus test=() path
  for corpus in "${CORPORA[@]}"; do stems+=("$OUT/extracted/$corpus.$PAIR"); done
  room raw "$(mib_of 105 "$OUT/extracted")"
  data corpora.gather --out "$1" --valid "$OUT/extracted/newstest2017-$SRC$TGT-"{"src.$SRC","ref.$TGT"}.sgm \
    --train "${stems[@]}" -- "$SRC" "$TGT"
  path=$(archive test.tgz)
  [ -z "$path" ] || test=(--archive "$path" --md5 "$(sed -n 's/^test.tgz\t.*\tmd5:\([0-9a-f]*\)\t.*/\1/p' "$MANIFEST")")
  data corpora.testset write wmt18 "$PAIR" "$1/test" "${test[@]}"
}

[[ $PAIR =~ ^(de|cs)-en$ ]] ||
  die "language pair '$PAIR': give de-en or cs-en; one preparation serves both directions"
check_setup
look_again
stage archives make_archives
stage extracted make_extracted
stage raw make_raw
prepare
