# shellcheck shell=bash
# The stages that GLUE and XNLI share: from labelled text to the folders that the task
# diet_sentence_prediction reads. Sourced, not run, after lib.sh. Settings of the recipe: OUT, VOCAB,
# MAX_LENGTH, BAD_ROWS, and make_raw, which writes the raw folder.
#
#   raw -> pieces -> input0, [input1,] label

MAX_LENGTH=${MAX_LENGTH:-128}      # tokens of an example with its marks; what is longer is cut
BAD_ROWS=${BAD_ROWS:-refuse}       # or skip: leave out rows that are not as they should be
# shellcheck disable=SC2034  # for lib.sh, which without languages says the sizes of folders in KiB
SRC=''

# check_labelled SETTINGS: the programs and the vocabulary are there, and OUT is of these settings.
check_labelled() {
  need awk df du grep od
  need_positive WORKERS MAX_LENGTH
  [[ $BAD_ROWS =~ ^(refuse|skip)$ ]] || die "BAD_ROWS '$BAD_ROWS': choose refuse or skip"
  [ -f "$VOCAB/dict.txt" ] ||
    die "$VOCAB: no dict.txt; set VOCAB to the bin folder that data-prep/prepare-mlm.sh made"
  TOKENIZER=$(cd "$VOCAB" && ls wordpiece.json spm.model 2>/dev/null) || true
  [ "$(wc -w <<<"$TOKENIZER")" = 1 ] ||
    die "$VOCAB: should hold one of wordpiece.json and spm.model, beside its dict.txt"
  [[ $OUT != *,* ]] || die "$OUT: fairseq-preprocess takes a comma for the end of a name; set OUT"
  need_python fairseq_cli sentencepiece tokenizers
  # The vocabulary by its content: a folder of the same name may hold another one.
  begin "$1 MAX_LENGTH=$MAX_LENGTH BAD_ROWS=$BAD_ROWS vocabulary=$(cat "$VOCAB/dict.txt" "$VOCAB/$TOKENIZER" | cksum | tr ' ' -)"
}

make_labelled_pieces() {
  room pieces "$(mib_of 130 "$OUT/raw")"
  data bert.pair_pieces --tokenizer "$VOCAB" --max-length "$MAX_LENGTH" --workers "$WORKERS" "$OUT/raw" "$1"
}

# make_bin_of PART FOLDER DICTIONARY TO: the splits of FOLDER that have this part, as fairseq has them.
make_bin_of() {
  local part=$1 text=$2 dictionary=$3 to=$4 file suffix number='' list=''
  rm -rf "$to" # fairseq cannot continue
  mkdir "$to"
  for file in "$text"/*."$part"; do list+=${list:+,}$file; done
  data stages.watch --name "fairseq-preprocess $part" --log "$OUT/preprocess.$part.log" --grows "$to" \
    "$PYTHON" -m fairseq_cli.preprocess --only-source --srcdict "$dictionary" \
    --workers "$(shares)" --destdir "$to" --testpref "$list"
  # The sets of the list are now test, test1, test2, ...: each gets its own name.
  mkdir "$to/named"
  for file in "$text"/*."$part"; do
    for suffix in bin idx; do
      mv "$to/test$number.$suffix" "$to/named/$(basename "$file" ".$part").$suffix"
    done
    number=$((number + 1))
  done
  mv "$to"/named/* "$to"
  rmdir "$to/named"
}

make_input() { make_bin_of "$1" "$OUT/pieces" "$VOCAB/dict.txt" "$2"; }

make_label() {
  local file
  if [ -f "$OUT/raw/labels.txt" ]; then
    make_bin_of label "$OUT/raw" "$OUT/raw/labels.txt" "$1"
  else # scores: fairseq reads them as text
    mkdir -p "$1"
    for file in "$OUT"/raw/*.label; do cp "$file" "$1/"; done
  fi
}

# prepare_labelled: all stages, then a look at the counts.
prepare_labelled() {
  local file part split found expected wrong=0
  stage raw make_raw
  stage pieces make_labelled_pieces
  stage input0 make_input input0
  if compgen -G "$OUT/pieces/*.input1" >/dev/null; then stage input1 make_input input1; fi
  stage label make_label
  if [ ! -e "$OUT/$TOKENIZER" ]; then # says what the pieces are, for who reads only this folder
    cp "$VOCAB/$TOKENIZER" "$OUT/$TOKENIZER.part"
    mv "$OUT/$TOKENIZER.part" "$OUT/$TOKENIZER"
  fi
  for file in "$OUT"/raw/*.input? "$OUT"/raw/*.label; do
    part=${file##*.} split=$(basename "${file%.*}")
    expected=$(count "$file")
    if [ -f "$OUT/$part/$split.idx" ]; then
      found=$(binarized "$OUT/$part/$split.idx")
    else
      found=$(count "$OUT/$part/$split.$part")
    fi
    say "   $split, $part: $found, expected $expected"
    [ "$found" = "$expected" ] || wrong=1
  done
  [ "$wrong" = 0 ] || die "$OUT does not have the expected counts; remove it and run again"
  say "ready: $OUT"
}
