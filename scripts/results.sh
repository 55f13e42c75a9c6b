#!/usr/bin/env bash
# Every table and picture of results/ that is made of rows, again: to run where rows were added, or
# code that shows them has changed. What needs trained models stays (figures/, new lines of curves/)
#
# From     results/, data/multi30k.en-de and .cs-en: diet-mt prepare multi30k en-de --out data/multi30k.en-de
# Example  scripts/results.sh && git diff --stat results
# Takes    two minutes on one core; run again, it makes the same files
# Licence  the captions derive from Flickr30k: for research
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

de=data/multi30k.en-de/raw/test.de
both=(data/multi30k.en-de/raw/test.de data/multi30k.cs-en/raw/test.en)

for rows in results/multi30k.*.jsonl results/{search,short,early}/multi30k.*.jsonl; do
  diet-mt compare "$rows" --references "${both[@]}"
done

diet-mt bench curves results/curves/multi30k.jsonl --loss --out results/curves/multi30k
diet-mt bench curves results/curves/recipe.jsonl --loss --out results/curves/recipe
diet-mt bench curves results/mlm/curves.jsonl --out results/mlm/curves

lengths() {  # FOLDER ROWS OPTIONS...
  diet-mt lengths "${@:2}" --references "$de" --format markdown --out "$1/lengths.png" > "$1/lengths.md.new"
  mv "$1/lengths.md.new" "$1/lengths.md"
}
lengths results results/multi30k.en-de.jsonl --buckets 5 --train data/multi30k.en-de/raw/train.de
lengths results/short results/short/multi30k.*.jsonl --buckets 4 --sources data/multi30k.en-de/bpe/test.en
diet-mt leaderboard results/early/multi30k.en-de.jsonl --format svg --out results/early/multi30k.en-de.svg
diet-mt leaderboard results/early/multi30k.en-de.jsonl --format svg --picture lengths \
  --out results/early/multi30k.en-de.lengths.svg

diet-mt bench speed --table results/benchmark/*.jsonl > results/benchmark.md
diet-mt bench encoder --table results/encoder_cost/*.jsonl > results/encoder_cost.md
diet-mt bench memory --table results/long_sequences/xeon.jsonl > results/long_sequences.md
diet-mt bench memory --plot results/long_sequences.png results/long_sequences/xeon.jsonl
diet-mt bench padding --table results/padding_memory/xeon.jsonl > results/padding_memory.md
diet-mt parity --table results/search_parity/*.jsonl > results/search_parity.md
diet-mt leaderboard results/tasks/*.jsonl --format markdown --out results/tasks.md

diet-mt leaderboard --format html --out results/leaderboard.html --references "${both[@]}"
diet-mt leaderboard --readme results/README.md
bash -euo pipefail -c "$(sed -n 's/^<!-- results:begin \(.*\) -->$/\1/p' README.md)"  # the command beside its table
for part in search short early; do
  diet-mt leaderboard results/"$part"/*.jsonl --readme results/"$part"/README.md
done
