#!/usr/bin/env bash
# Times fairseq's own Transformer and each of our encodings on this machine: training step,
# teacher-forced forward pass and beam-10 decoding, of tiny and base size. CTranslate2, where it is
# installed (pip install --no-deps ctranslate2), and our models under fairseq's search only decode.
#
#   scripts/benchmark.sh                                         made-up sentences
#   scripts/benchmark.sh --data data/multi30k.en-de/bin
#   scripts/benchmark.sh --systems stock t5 "t5 --position-in encoder,decoder"
#
# Options are those of diet-mt bench speed; for a GPU there is scripts/gpu-checks.sh. Leave the
# machine to it alone. Time on two cores: twenty minutes. Writes results/benchmark/this.jsonl and
# results/benchmark.md.
set -euo pipefail

case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

mkdir -p results/benchmark
new=results/benchmark/this.part
diet-mt bench speed --size tiny "$@" > "$new"
# A step of base costs some twenty times as much: fewer turns, smaller batches. In training a system
# takes a gigabyte of memory; for fewer of them: --systems stock diet_rel
diet-mt bench speed --size base --rounds 5 --warmup 1 --batches 1 --train-tokens 2048 --decode-tokens 512 \
  "$@" >> "$new"
mv "$new" results/benchmark/this.jsonl
python results/benchmark/table.py results/benchmark/*.jsonl | tee results/benchmark.part
mv results/benchmark.part results/benchmark.md
