#!/usr/bin/env bash
# Ten years of WMT's news test sets as a small corpus of real news, for a small machine.
#
# Makes    $OUT/raw, clean, tok, bpe.codes, bpe and bin, by the stages of prepare-wmt18.sh
# From     newstest2008 to 2015 for training, 2017 for validation, 2016 for testing (it is the last
#          that is left; with TEST_YEAR=2018 that year is the test, and 2016 is trained on): all from
#          the folder $NEWSTEST_DIR if that is set (newstest2008.en-de.en or .en.gz, ...), all from
#          SacreBLEU otherwise
# Example  NEWSTEST_DIR=news data-prep/prepare-newstest.sh en-de      (or en-cs)
# Takes    about a minute, 60 MB of disk
# Licence  WMT test sets: free for research
set -euo pipefail

PAIR=${1:-en-de}
SRC=${PAIR%-*}
TGT=${PAIR#*-}
OUT=${OUT:-data/newstest.$PAIR}
TEST_YEAR=${TEST_YEAR:-2016}
VALID_YEAR=${VALID_YEAR:-2017}
TRAIN_YEARS=${TRAIN_YEARS:-2008-$([ "$TEST_YEAR" = 2016 ] && echo 2015 || echo 2016)}
BPE_MERGES=${BPE_MERGES:-6000}
SPM_SIZE=${SPM_SIZE:-6000}
CLEAN=${CLEAN---max-words 250 --max-chars 2000 --ratio 2.0 --language-chars 40 --certainty 0.9}
WORKERS=${WORKERS:-} # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
SETTINGS="years=$TRAIN_YEARS+$VALID_YEAR+$TEST_YEAR"
HERE=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"
# shellcheck source=data-prep/stages.sh
. "$HERE/stages.sh"

case $PAIR in -h | --help) header && exit 0 ;; esac

make_raw() {
  local folder=()
  [ -z "${NEWSTEST_DIR:-}" ] || folder=(--folder "$NEWSTEST_DIR")
  data corpora.newstest --out "$1" "${folder[@]}" \
    --train "$TRAIN_YEARS" --valid "$VALID_YEAR" --test "$TEST_YEAR" "$SRC" "$TGT"
  data corpus "$1" "$SRC" "$TGT" >/dev/null
}

[[ $PAIR =~ ^en-(de|cs)$ ]] || die "language pair '$PAIR': give en-de or en-cs"
check_setup
stage raw make_raw
prepare
