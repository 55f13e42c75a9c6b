#!/usr/bin/env bash
# Makes the tables and pictures of results/ from their rows, after a change of rows or of the code of
# tables and pictures. New rows of figures/ and curves/ require trained models.
#
# From     results/, and data for the lengths of sentences: data/multi30k.en-de (diet-mt prepare multi30k en-de)
#          and data/newstest.en-de.short (diet-mt prepare newstest en-de --out data/newstest.en-de.short); office alike
# Example  scripts/results.sh && git diff --stat results
# Takes    a quarter of an hour on one core; a second run makes the same files
# Licence  the captions derive from Flickr30k, for research use
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
(($# == 0)) || { echo "$0: takes no arguments, and $1 was given" >&2; exit 2; }

de=data/multi30k.en-de/raw/test.de
news=data/newstest.en-de.short/raw/test.de
office=data/office.en-de.short/raw/test.de
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# FILE COMMAND...: writes the output to the file if the command succeeds.
into() { "${@:2}" > "$new" && cat "$new" > "$1"; }

# NAME SYSTEMS ARGUMENTS...: NAME.md of all systems, and NAME.png of SYSTEMS, as many as are legible.
lengths() {
  into "$1.md" diet-mt lengths "${@:3}" --format markdown
  # shellcheck disable=SC2086
  diet-mt lengths "${@:3}" --out "$1.png" --systems $2 > /dev/null
}

for curves in results/curves/*.jsonl; do
  diet-mt bench curves "$curves" --loss --out "${curves%.jsonl}"
done
for curves in results/mlm/*.jsonl; do
  diet-mt bench curves "$curves" --out "${curves%.jsonl}"
done

# Adds the hypotheses of new rows to the archive of their corpus.
find results -name '*.hyp.txt' -printf '%h\n' | sort -u | while read -r folder; do
  [ ! -f "$folder.hyp.tar.xz" ] || tar -C "$folder/.." --skip-old-files -xJf "$folder.hyp.tar.xz"
  (cd "$folder/.." && tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
    -cf - "${folder##*/}"/*.hyp.txt) | xz -9e >"$folder.hyp.tar.xz.part"
  mv "$folder.hyp.tar.xz.part" "$folder.hyp.tar.xz" && rm -r "$folder"
done

find results/figures -name '*.jsonl' -exec gzip -9nf {} +
for folder in results/figures{,/cs-en,/mlm}; do
  into "$folder/heads.md" diet-mt figures --out "$folder" --format markdown
done

few="sinusoidal shaw diet_rel diet_abs rotary rotary_ntk"
lengths results/lengths "sinusoidal learned shaw.published t5.published tupe_abs rotary diet_rel diet_abs deberta none" \
  results/multi30k.en-de.jsonl --buckets 5
lengths results/short/lengths "$few t5 tupe_abs fire none" results/short/multi30k.*.jsonl --references "$de" --buckets 4 \
  --sources data/multi30k.en-de/bpe/test.en --trained-to 14
lengths results/short/newstest "$few t5 fire alibi none" results/short/newstest.*.jsonl --references "$news" --width 10 \
  --sources data/newstest.en-de.short/bpe/test.en --trained-to 50
lengths results/short/office "sinusoidal shaw.published rotary diet_rel diet_abs" results/short/office.*.jsonl \
  --references "$office" --sources data/office.en-de.short/bpe/test.en --width 25 --trained-to 25
lengths results/joined/lengths "$few shaw.encoder,decoder diet_rel.encoder,decoder diet_abs.encoder,decoder none" \
  results/joined/multi30k.en-de.joined.jsonl --by-test-set
lengths results/joined/training "sinusoidal shaw diet_rel diet_abs rotary tupe_abs kerple diet_rel.lr0.003 shaw.lr0.003 tupe_abs.lr0.003" \
  results/joined/multi30k.en-de.joined-training.jsonl --by-test-set

for script in results/*/table.py results/padding_memory/measure.py; do
  measured=${script%/*}
  into "$measured.md" python "$script" "$measured"/*.jsonl
done
diet-mt leaderboard results/tasks/*.jsonl --format markdown --out results/tasks.md

diet-mt leaderboard results/*.jsonl results/{short,joined,tasks}/*.jsonl --format html --out results/leaderboard.html
diet-mt claims --readme results/claims.md --figure results/summary.png
diet-mt claims --brief --readme results/README.md
diet-mt leaderboard --readme results/translation.md
for page in README.md results/{search,short,joined,long,int8}/README.md; do
  command=$(sed -n 's/^<!-- results:begin \(diet-mt .*\) -->$/\1/p' "$page")  # of its table
  [ -n "$command" ] || { echo "$page: its table names no command" >&2; exit 1; }
  bash -euo pipefail -c "$command"
done
