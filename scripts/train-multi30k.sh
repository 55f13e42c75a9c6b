#!/usr/bin/env bash
# One training of the comparison on Multi30k, from the captions to a row of results.
#
# Makes    data/multi30k.en-de, checkpoints/multi30k.en-de/diet_rel.1, one line of
#          results/multi30k.en-de.jsonl
# From     Multi30k, task 1: downloaded, or --from FOLDER of `diet-mt prepare`
# Example  scripts/train-multi30k.sh
#          scripts/train-multi30k.sh --dry-run        prints all commands, does nothing
#          scripts/train-multi30k.sh --max-epoch 5    any option of fairseq-train
# Takes    about half an hour on one core, 60 MB of disk. Run again, it continues where it was.
# Licence  of the captions: none given; they derive from Flickr30k, for research use
#
# All encodings and seeds: diet-mt sweep multi30k
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep multi30k --runs system=diet_rel,seed=1 --dry-run ;;
esac

diet-mt prepare multi30k en-de --out data/multi30k.en-de
diet-mt train data/multi30k.en-de diet_rel_tiny --recipe multi30k --seed 1 \
  --save-dir checkpoints/multi30k.en-de/diet_rel.1 "$@"
diet-mt evaluate data/multi30k.en-de checkpoints/multi30k.en-de/diet_rel.1 \
  --test-set-name "Multi30k test_2016_flickr"
diet-mt leaderboard results/multi30k.en-de.jsonl
