#!/usr/bin/env bash
# Fine-tunes two pretrained encoders once on CoLA, a task of GLUE, and compares them with the paper's
# table 2. The paper's grid on six tasks, 720 runs: diet-mt sweep glue --set from=glue
#
# Makes    data/glue/CoLA, checkpoints/glue.base/CoLA, rows of results/tasks/CoLA.jsonl
# From     the folder glue with GLUE's official files (gluebenchmark.com), as glue/CoLA/train.tsv; the
#          vocabulary data/mlm.en/bin and the checkpoints of diet-mt sweep mlm
# Example  scripts/glue.sh          or          scripts/glue.sh --batch-size 16
# Takes    some minutes on one GPU and the disk of a checkpoint per run; if interrupted, run it again
# Licence  that of each task; most are for research use only
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep glue --set from=glue --dry-run ;;
esac

diet-mt prepare glue CoLA --from glue --vocab data/mlm.en/bin --out data/glue/CoLA

diet-mt finetune data/glue/CoLA checkpoints/mlm.base/learned.1/checkpoint_best.pt --recipe glue \
  --segments input --lr 3e-5 --max-epoch 5 --seed 1 \
  --save-dir checkpoints/glue.base/CoLA/learned.input/lr3e-5.epochs5.1 "$@"
diet-mt finetune data/glue/CoLA checkpoints/mlm.base/diet_rel.1/checkpoint_best.pt --recipe glue \
  --segments per-head --lr 3e-5 --max-epoch 5 --seed 1 \
  --save-dir checkpoints/glue.base/CoLA/diet_rel.per-head/lr3e-5.epochs5.1 "$@"

diet-mt predict data/glue/CoLA \
  checkpoints/glue.base/CoLA/learned.input/lr3e-5.epochs5.1/checkpoint_best.pt --split dev \
  --results results/tasks
diet-mt predict data/glue/CoLA \
  checkpoints/glue.base/CoLA/diet_rel.per-head/lr3e-5.epochs5.1/checkpoint_best.pt --split dev \
  --results results/tasks
# For GLUE's server: --split test --predictions FOLDER, with the selected run.

diet-mt leaderboard results/tasks/CoLA.jsonl
