# shellcheck shell=bash
# The stages that all corpora share: from OUT/raw to OUT/bin, the folder that fairseq-train reads.
# Sourced, not run, after lib.sh. Settings of the recipe: SUBWORDS, BPE_MERGES or SPM_SIZE, CLEAN, ...
#
#   raw -> [clean] -> tok -> bpe.codes -> bpe -> bin        with SUBWORDS=bpe
#   raw -> [clean] -> spm.model -> spm -> bin               with SUBWORDS=spm

SUBWORDS=${SUBWORDS:-bpe}             # bpe, on Moses tokens; or spm: SentencePiece on plain text
CLEAN=${CLEAN:-}                      # options of diet_mt.corpora.clean; empty: take the text as it is
BPE_WORDS=${BPE_WORDS:-1000000}       # most frequent words that the codes are learnt from
SPM_SIZE=${SPM_SIZE:-32000}           # pieces
SPM_SAMPLE=${SPM_SAMPLE:-3000000}     # sentences that they are learnt from
SPM_COVERAGE=${SPM_COVERAGE:-0.9999}  # share of characters that are pieces
DICTIONARY=${DICTIONARY:--1}          # bpe: entries of fairseq's dictionary at most; -1: all

# check_setup: the programs are there, and OUT belongs to the settings it was begun with.
check_setup() {
  local now="$SRC-$TGT"
  need awk df du grep od
  need_positive WORKERS
  case $SUBWORDS in
    bpe)
      need_positive BPE_MERGES BPE_WORDS
      now+=" BPE_MERGES=$BPE_MERGES" MODEL=bpe.codes
      [ "$BPE_WORDS" = 1000000 ] || now+=" BPE_WORDS=$BPE_WORDS"
      [ "$DICTIONARY" = -1 ] || now+=" DICTIONARY=$DICTIONARY"
      ;;
    spm)
      need_positive SPM_SIZE SPM_SAMPLE
      now+=" SPM_SIZE=$SPM_SIZE SPM_SAMPLE=$SPM_SAMPLE SPM_COVERAGE=$SPM_COVERAGE" MODEL=spm.model
      ;;
    *) die "SUBWORDS '$SUBWORDS': choose bpe or spm" ;;
  esac
  need_python fairseq_cli sacrebleu sacremoses sentencepiece subword_nmt
  [[ $CLEAN != *--language-chars* ]] || need_python py3langid
  TEXT=$OUT/raw
  [ -z "$CLEAN" ] || { now+=" CLEAN='$CLEAN'" TEXT=$OUT/clean; }
  begin "$now${SETTINGS:+ $SETTINGS}"
}

make_clean() {
  local options
  read -r -a options <<<"$CLEAN"
  room clean "$(mib_of 105 "$OUT/raw")"
  data corpora.clean --workers "$WORKERS" "${options[@]}" --report "$OUT/clean.tsv" "$OUT/raw" "$1" "$SRC" "$TGT"
}

make_tok() {
  room tok "$(mib_of 120 "$TEXT")"
  data corpora.moses --workers "$WORKERS" "$TEXT" "$1" "$SRC" "$TGT"
}

make_codes() {
  data corpora.subwords learn --kind bpe --workers "$WORKERS" --max-words "$BPE_WORDS" --size "$BPE_MERGES" \
    --out "$1" "$OUT/tok/train.$SRC" "$OUT/tok/train.$TGT"
}

make_model() {
  # In a process of its own: SentencePiece says nothing while it learns.
  data stages.watch --name "SentencePiece" --log "$OUT/spm.log" --grows "$1.part" \
    "$PYTHON" "$ROOT/data-prep/run.py" corpora.subwords learn --kind spm --size "$SPM_SIZE" \
    --sample "$SPM_SAMPLE" --coverage "$SPM_COVERAGE" --out "$1" "$TEXT/train.$SRC" "$TEXT/train.$TGT"
}

make_pieces() {
  local from=$OUT/tok
  [ "$SUBWORDS" = bpe ] || from=$TEXT
  room "$SUBWORDS" "$(mib_of 130 "$from")"
  data corpora.subwords apply --kind "$SUBWORDS" --workers "$WORKERS" --model "$OUT/$MODEL" "$from" "$1" "$SRC" "$TGT"
}

make_bin() {
  local text=$OUT/$SUBWORDS dictionary=(--nwordssrc "$DICTIONARY" --nwordstgt "$DICTIONARY")
  local tests=$text/test
  rm -rf "$1" # fairseq cannot continue
  mkdir "$1"
  room bin "$(mib_of 100 "$text")"
  [ ! -e "$text/test1.$SRC" ] || tests+=,$text/test1
  if [ "$SUBWORDS" = spm ]; then
    data corpora.subwords dictionary --model "$OUT/$MODEL" "$OUT/spm.dict"
    dictionary=(--srcdict "$OUT/spm.dict")
  fi
  data stages.watch --name fairseq-preprocess --log "$OUT/preprocess.log" --grows "$1" \
    "$PYTHON" -m fairseq_cli.preprocess --source-lang "$SRC" --target-lang "$TGT" \
    --joined-dictionary "${dictionary[@]}" --workers "$(shares)" --destdir "$1" \
    --trainpref "$text/train" --validpref "$text/valid" --testpref "$tests"
  keep_model "$1"
}

# keep_model BIN: puts the subword model beside the data, to say how output becomes text again.
keep_model() {
  [ ! -e "$1/$MODEL" ] || return 0
  cp "$OUT/$MODEL" "$1/$MODEL.part" 2>/dev/null || die "$1/$MODEL: cannot be written; make room and run again"
  mv "$1/$MODEL.part" "$1/$MODEL"
}

# prepare: all stages after raw/, then a look at the counts.
prepare() {
  local split lang found expected wrong=0
  [ -z "$CLEAN" ] || stage clean make_clean
  if [ "$SUBWORDS" = bpe ]; then
    stage tok make_tok
    stage bpe.codes make_codes
  else
    stage spm.model make_model
  fi
  stage "$SUBWORDS" make_pieces
  stage bin make_bin
  keep_model "$OUT/bin" # a folder of an earlier version has none
  for split in train valid test test1; do
    [ -e "$TEXT/$split.$SRC" ] || continue
    for lang in "$SRC" "$TGT"; do
      found=$(binarized "$OUT/bin/$split.$SRC-$TGT.$lang.idx")
      expected=$(count "$TEXT/$split.$lang")
      say "   $split.$lang: $found sentences, expected $expected"
      [ "$found" = "$expected" ] || wrong=1
    done
  done
  [ "$wrong" = 0 ] || die "$OUT/bin does not have the expected counts; remove $OUT and run again"
  say "ready: $OUT/bin"
}
