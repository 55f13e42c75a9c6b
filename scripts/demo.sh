#!/usr/bin/env bash
# Generated sentences whose meaning depends on word order, two tiny models that differ only in positions,
# and their table. Four models, two at a time: diet-mt sweep demo
#
# Makes    data/demo.en-de, checkpoints/demo with its results
# From     nothing: the sentences are generated
# Example  scripts/demo.sh          or          scripts/demo.sh --max-epoch 5     (options of training)
# Takes    six minutes on one core, 120 MB of disk; if interrupted, run it again
# Licence  that of this project
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep demo --dry-run ;;
esac

diet-mt prepare demo --out data/demo.en-de

diet-mt train data/demo.en-de/bin sinusoidal_tiny --recipe demo --seed 1 \
  --save-dir checkpoints/demo/sinusoidal.1 "$@"
diet-mt train data/demo.en-de/bin diet_rel_tiny --recipe demo --seed 1 \
  --save-dir checkpoints/demo/diet_rel.1 "$@"

diet-mt evaluate data/demo.en-de/bin checkpoints/demo/sinusoidal.1 \
  --test-set-name "generated word order" --results checkpoints/demo/results
diet-mt evaluate data/demo.en-de/bin checkpoints/demo/diet_rel.1 \
  --test-set-name "generated word order" --results checkpoints/demo/results

diet-mt leaderboard checkpoints/demo/results/demo.en-de.jsonl
