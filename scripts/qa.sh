#!/usr/bin/env bash
# Fine-tunes a multilingual encoder once on SQuAD and tests it zero-shot in other languages of XQuAD. The
# paper's grid and three systems: diet-mt sweep qa with the options below
#
# Makes    data/SQuAD, checkpoints/qa.base with the answers, rows of results/tasks
# From     train-v1.1.json and dev-v1.1.json (rajpurkar.github.io/SQuAD-explorer), the folder xquad
#          (github.com/google-deepmind/xquad); the vocabulary data/mlm.multi/bin and the checkpoints of
#          diet-mt sweep mlm-multilingual
# Example  scripts/qa.sh          or          scripts/qa.sh --batch-size 16
# Takes    three epochs of 88,000 questions, 3 GB of disk; if interrupted, run it again
# Licence  SQuAD, XQuAD: CC BY-SA 4.0
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep qa --set train=train-v1.1.json --set valid=dev-v1.1.json \
    --set xquad=xquad --set "tests=[xquad_de, xquad_zh]" --dry-run ;;
esac

diet-mt prepare qa --train train-v1.1.json --valid dev-v1.1.json --xquad xquad \
  --vocab data/mlm.multi/bin --out data/SQuAD

diet-mt finetune data/SQuAD checkpoints/mlm-multilingual.base/diet_rel.1/checkpoint_best.pt \
  --task SQuAD --recipe qa --segments per-head --lr 3e-5 --max-epoch 3 --seed 1 \
  --save-dir checkpoints/qa.base/diet_rel.per-head/lr3e-5.epochs3.1 "$@"

diet-mt answer data/SQuAD checkpoints/qa.base/diet_rel.per-head/lr3e-5.epochs3.1/checkpoint_best.pt \
  --split valid test_xquad_de test_xquad_zh \
  --out checkpoints/qa.base/diet_rel.per-head/lr3e-5.epochs3.1/answers --results results/tasks

diet-mt leaderboard results/tasks/XQuAD.jsonl results/tasks/SQuAD.jsonl
