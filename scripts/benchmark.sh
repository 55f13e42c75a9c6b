#!/usr/bin/env bash
# Measures the speed of fairseq's Transformer and of each encoding on this machine: training step,
# teacher-forced forward pass and beam-10 decoding, at tiny and base size. CTranslate2, if installed
# (pip install --no-deps ctranslate2), and our models with fairseq's search are measured in decoding only.
#
#   scripts/benchmark.sh                                         random sentences
#   scripts/benchmark.sh --data data/multi30k.en-de/bin
#   scripts/benchmark.sh --systems stock t5 "t5 --position-in encoder,decoder"
#
# Options are those of diet-mt bench speed; for a GPU, use scripts/gpu-checks.sh. Nothing else should run
# on the machine. Time: twenty minutes on two cores. Writes results/benchmark/this.jsonl and
# results/benchmark.md.
set -euo pipefail

case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

mkdir -p results/benchmark
new=results/benchmark/this.part
diet-mt bench speed --size tiny "$@" > "$new"
# A step at base takes some twenty times as long: fewer rounds, smaller batches. In training, each system
# takes a gigabyte of memory; --systems stock diet_rel selects fewer.
diet-mt bench speed --size base --rounds 5 --warmup 1 --batches 1 --train-tokens 2048 --decode-tokens 512 \
  "$@" >> "$new"
mv "$new" results/benchmark/this.jsonl
python results/benchmark/table.py results/benchmark/*.jsonl | tee results/benchmark.part
mv results/benchmark.part results/benchmark.md
