#!/usr/bin/env bash
# One training of the paper's table 4: English to German on WMT18, 250,000 updates, newstest2018.
#
# Makes    data/wmt18.de-en, checkpoints/wmt18.en-de/diet_rel.1, lines of results/wmt18.de-en.jsonl
# From     Europarl v7, Common Crawl, News Commentary v13 and newstest: downloaded
# Example  scripts/train-wmt18.sh                    on all GPUs of this machine
#          scripts/train-wmt18.sh --dry-run          prints the fairseq-train command
#          scripts/train-wmt18.sh --max-tokens-per-device 4096 --keep-interval-updates 5
# Takes    an estimated day on one recent GPU; 40 GB of disk for the data, 3 GB for the training
# Licence  each corpus has its own; see data-prep/prepare-wmt18.sh
#
# All systems in all directions: diet-mt sweep table4. Settings and several machines:
# docs/training-wmt18.md
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

diet-mt prepare wmt18 de-en --out data/wmt18.de-en --subwords bpe
diet-mt train data/wmt18.de-en diet_rel_base --recipe table4 --seed 1 \
  --source-lang en --target-lang de --save-dir checkpoints/wmt18.en-de/diet_rel.1 "$@"
diet-mt evaluate data/wmt18.de-en checkpoints/wmt18.en-de/diet_rel.1 \
  --length-penalty gnmt --test-set-name newstest2018
diet-mt leaderboard results/wmt18.de-en.jsonl
