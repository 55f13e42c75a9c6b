#!/usr/bin/env bash
# Fine-tunes a multilingual encoder once on English MNLI and tests it zero-shot in other languages of XNLI.
# The paper's grid, three systems and all languages: diet-mt sweep xnli --set from=xnli --set mnli=glue
#
# Makes    data/XNLI, checkpoints/xnli.base, rows of results/tasks/XNLI.jsonl
# From     the folders xnli (xnli.dev.tsv, xnli.test.tsv) and glue (MNLI/train.tsv); the vocabulary
#          data/mlm.multi/bin and the checkpoints of diet-mt sweep mlm-multilingual
# Example  scripts/xnli.sh          or          scripts/xnli.sh --batch-size 16
# Takes    three epochs of 393,000 examples, 3 GB of disk; if interrupted, run it again
# Licence  XNLI: CC BY-NC 4.0; MNLI: OANC and others
set -euo pipefail
case " $* " in
  *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *" --dry-run "*) exec diet-mt sweep xnli --set from=xnli --set mnli=glue --dry-run ;;
esac

diet-mt prepare xnli --from xnli --mnli glue --vocab data/mlm.multi/bin --out data/XNLI

diet-mt finetune data/XNLI checkpoints/mlm-multilingual.base/diet_rel.1/checkpoint_best.pt \
  --task XNLI --recipe xnli --segments per-head --lr 3e-5 --max-epoch 3 --seed 1 \
  --save-dir checkpoints/xnli.base/diet_rel.per-head/lr3e-5.epochs3.1 "$@"

diet-mt predict data/XNLI \
  checkpoints/xnli.base/diet_rel.per-head/lr3e-5.epochs3.1/checkpoint_best.pt \
  --task XNLI --split valid_en test_en test_de test_zh \
  --results results/tasks

diet-mt leaderboard results/tasks/XNLI.jsonl
