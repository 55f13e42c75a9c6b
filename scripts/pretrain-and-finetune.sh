#!/usr/bin/env bash
# Pretrains one encoder on English text as a masked language model, fine-tunes it on CoLA and scores it.
#
# Makes    data/mlm, data/glue/CoLA, checkpoints/mlm/diet_rel.1, checkpoints/CoLA/diet_rel.1, one line
#          of results/tasks/CoLA.jsonl
# From     train.txt and valid.txt, documents separated by empty lines, and the folder GLUE
# Example  scripts/pretrain-and-finetune.sh
#          scripts/pretrain-and-finetune.sh --size tiny --max-update 2000    of the pretraining
# Takes    weeks on one recent GPU at base size (an estimate), 10 GB of disk
# Licence  those of the text and the task
#
# The whole grid of learning rates, epochs and seeds: diet-mt sweep glue
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) echo "error: --dry-run: the later commands need what the first make" >&2; exit 2 ;;
esac

diet-mt prepare mlm --train train.txt --valid valid.txt --out data/mlm
diet-mt pretrain data/mlm diet_rel --recipe mlm --seed 1 --save-dir checkpoints/mlm/diet_rel.1 "$@"
diet-mt prepare glue CoLA --from GLUE --vocab data/mlm/bin --out data/glue/CoLA
diet-mt finetune data/glue/CoLA checkpoints/mlm/diet_rel.1/checkpoint_best.pt --recipe glue --seed 1 \
  --lr 2e-5 --max-epoch 10 --segments per-head --save-dir checkpoints/CoLA/diet_rel.1
diet-mt predict data/glue/CoLA checkpoints/CoLA/diet_rel.1/checkpoint_best.pt \
  --results results/tasks
diet-mt leaderboard results/tasks/CoLA.jsonl
