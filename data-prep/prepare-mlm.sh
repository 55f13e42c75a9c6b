#!/usr/bin/env bash
# Plain text as the corpus of a masked language model, for scripts/pretrain.sh.
#
# Makes    $OUT/sentences, sample, wordpiece.json or spm.model, pieces and bin; bin holds dict.txt and
#          the tokenizer, and is what data-prep/prepare-glue.sh and the like take as VOCAB
# From     text files, plain or .gz: a paragraph on a line, an empty line between documents
# Example  TRAIN="wiki.txt.gz books/*.gz" VALID=held-out.txt OUT=data/mlm.en data-prep/prepare-mlm.sh
#          SETTING=multilingual TRAIN="de:de.gz cs:cs.gz" VALID="de:de.valid cs:cs.valid" ...
# Takes    20 s of processor time and 35 MB for 1.5 million words; for the 3,300 million of English
#          Wikipedia and books an estimated 12 hours of one core, or one of sixteen, and 70 GB
# Licence  that of the text
#
# SETTING=english: WordPiece of 30,000 and sequences of 128, as in Chen et al. 2021; multilingual:
# SentencePiece of 120,000 and sequences of 512. The paper does not say whether its English model was
# cased; CASED=1 keeps capitals and accents. Several languages: see ALPHA. Files are known by their
# names: after a change inside of one, remove OUT.
set -euo pipefail

TRAIN=${TRAIN:-}           # [LANGUAGE:]FILE ..., patterns too; no path with a space
VALID=${VALID:-}
OUT=${OUT:-data/mlm}
SETTING=${SETTING:-english}
LANGUAGE=${LANGUAGE:-en}   # of files given without one: it decides where sentences end
SUBWORDS=${SUBWORDS:-$([ "$SETTING" = english ] && echo wordpiece || echo spm)}
VOCAB_SIZE=${VOCAB_SIZE:-$([ "$SETTING" = english ] && echo 30000 || echo 120000)} # fairseq's marks included
MAX_LENGTH=${MAX_LENGTH:-$([ "$SETTING" = english ] && echo 128 || echo 512)}      # pieces, <s> and </s> included
CASED=${CASED:-}           # 1: WordPiece with capital letters and accents
VOCAB_SAMPLE=${VOCAB_SAMPLE:-3000000}   # sentences that the pieces are learnt from
SPM_COVERAGE=${SPM_COVERAGE:-0.9999}    # share of characters that are pieces
ALPHA=${ALPHA:-0.5}        # a language's share to this power, as XLM has it; 1: all text once
WORKERS=${WORKERS:-}       # processes; empty: one for each core
PYTHON=${PYTHON:-python3}
HERE=$(cd "$(dirname "$0")" && pwd)

# shellcheck source=data-prep/lib.sh
. "$HERE/lib.sh"

make_sentences() {
  data bert.mlm sentences --workers "$WORKERS" --language "$LANGUAGE" --out "$1" \
    --train "${train[@]}" --valid "${valid[@]}"
}

make_sample() { data bert.mlm sample --size "$VOCAB_SAMPLE" --alpha "$ALPHA" "$OUT/sentences" "$1"; }

make_tokenizer() {
  # In a process of its own: both libraries say little while they learn.
  data stages.watch --name "$SUBWORDS" --log "$OUT/$SUBWORDS.log" --grows "$1.part" \
    "$PYTHON" "$ROOT/data-prep/run.py" bert.mlm learn --kind "$SUBWORDS" --size "$VOCAB_SIZE" --out "$1" \
    ${CASED:+--cased} --sentences "$VOCAB_SAMPLE" --coverage "$SPM_COVERAGE" "$OUT/sample"
}

make_pieces() {
  room pieces "$(mib_of 150 "$OUT/sentences")"
  data bert.mlm pieces --workers "$WORKERS" --tokenizer "$OUT/$MODEL" --max-length "$MAX_LENGTH" \
    --alpha "$ALPHA" "$OUT/sentences" "$1"
}

make_bin() {
  rm -rf "$1" # fairseq cannot continue
  room bin "$(mib_of 100 "$OUT/pieces")"
  data bert.mlm dictionary --tokenizer "$OUT/$MODEL" "$OUT/dict.txt"
  data stages.watch --name fairseq-preprocess --log "$OUT/preprocess.log" --grows "$1" \
    "$PYTHON" -m fairseq_cli.preprocess --only-source --srcdict "$OUT/dict.txt" --workers "$(shares)" \
    --trainpref "$OUT/pieces/train" --validpref "$OUT/pieces/valid" --destdir "$1"
  cp "$OUT/$MODEL" "$1/$MODEL"
  echo "$MAX_LENGTH" >"$1/max-length"
}

case $SETTING in english | multilingual) ;; *) die "SETTING '$SETTING': choose english or multilingual" ;; esac
case $SUBWORDS in
  wordpiece) MODEL=wordpiece.json ;;
  spm) MODEL=spm.model ;;
  *) die "SUBWORDS '$SUBWORDS': choose wordpiece or spm" ;;
esac
case $CASED in '' | 1) ;; *) die "CASED '$CASED': give 1, or leave it empty" ;; esac
[ -n "$TRAIN" ] || die "set TRAIN to the files of training text"
[ -n "$VALID" ] || die "set VALID to the files of validation text"
read -r -d '' -a train <<<"$TRAIN" || true # to the end of all lines
read -r -d '' -a valid <<<"$VALID" || true
need awk df du grep od
need_positive WORKERS VOCAB_SIZE MAX_LENGTH VOCAB_SAMPLE
need_share ALPHA SPM_COVERAGE
need_python fairseq_cli sentencepiece sentencex tokenizers
SRC=$LANGUAGE
settings="TRAIN='$TRAIN' VALID='$VALID' LANGUAGE=$LANGUAGE SUBWORDS=$SUBWORDS"
begin "$settings MAX_LENGTH=$MAX_LENGTH VOCAB_SAMPLE=$VOCAB_SAMPLE ALPHA=$ALPHA"
settings="VOCAB_SIZE=$VOCAB_SIZE"
[ "$SUBWORDS" = wordpiece ] && settings+=" CASED=$CASED" || settings+=" SPM_COVERAGE=$SPM_COVERAGE"
own_settings "$MODEL" "$settings"
stage sentences make_sentences
stage sample make_sample
stage "$MODEL" make_tokenizer
stage pieces make_pieces
stage bin make_bin
for split in train valid; do
  found=$(binarized "$OUT/bin/$split.idx")
  expected=$(count "$OUT/pieces/$split")
  say "   $split: $found lines, expected $expected"
  [ "$found" = "$expected" ] || die "$OUT/bin does not have the expected counts; remove $OUT and run again"
done
say "ready: $OUT/bin"
