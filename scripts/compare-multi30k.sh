#!/usr/bin/env bash
# Two encodings on Multi30k, English to German, tiny size, and their table. The whole comparison, 24
# trainings: diet-mt sweep multi30k; Czech to English: diet-mt sweep multi30k.cs-en
#
# Makes    data/multi30k.en-de, checkpoints/multi30k.en-de.tiny, rows of results/multi30k.en-de.jsonl
# From     github.com/multi30k/dataset, or a folder with its files: prepare multi30k --from FOLDER
# Example  scripts/compare-multi30k.sh     or     scripts/compare-multi30k.sh --dropout 0.2
# Takes    half an hour on one core and 60 MB of disk per training; if interrupted, run it again
# Licence  the captions derive from Flickr30k, for research use
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep multi30k --dry-run ;;
esac

diet-mt prepare multi30k en-de --out data/multi30k.en-de

diet-mt train data/multi30k.en-de/bin sinusoidal_tiny --recipe multi30k --seed 1 \
  --save-dir checkpoints/multi30k.en-de.tiny/sinusoidal.1 "$@"
diet-mt train data/multi30k.en-de/bin diet_rel_tiny --recipe multi30k --seed 1 \
  --save-dir checkpoints/multi30k.en-de.tiny/diet_rel.1 "$@"

diet-mt evaluate data/multi30k.en-de/bin checkpoints/multi30k.en-de.tiny/sinusoidal.1 \
  --beam 10 --lenpen 0.6 --test-set-name "Multi30k test_2016_flickr" --results results
diet-mt evaluate data/multi30k.en-de/bin checkpoints/multi30k.en-de.tiny/diet_rel.1 \
  --beam 10 --lenpen 0.6 --test-set-name "Multi30k test_2016_flickr" --results results

diet-mt compare results/multi30k.en-de.jsonl
diet-mt leaderboard results/multi30k.en-de.jsonl
