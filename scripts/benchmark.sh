#!/usr/bin/env bash
# Times fairseq's own Transformer and each of our encodings on this machine: training step,
# teacher-forced forward pass and beam-10 decoding, of tiny and base size, on the CPU and, if there
# is one, on the GPU. More rows decode alone: CTranslate2 with stock fairseq's weights, where it is
# installed (pip install --no-deps ctranslate2), and our models under fairseq's own search. Each
# system is a process of its own, stock fairseq's without the plugin, and they take turns. Writes
# RESULTS/<name>.jsonl, and the tables of all such files to RESULTS.md, both at the end.
#
#   scripts/benchmark.sh cpu                                    made-up sentences
#   DATA=data/multi30k.en-de/bin scripts/benchmark.sh cpu       real ones
#   scripts/benchmark.sh h200 --device cuda --fp16              the GPU alone, also in half precision
#   DATA=data/multi30k.en-de/bin SIZES=tiny scripts/benchmark.sh trained --measures decode \
#     --batches 0 --decode-length 0 --checkpoint stock=STOCK.pt --checkpoint diet_rel=REL.pt
#                                                     the whole test set, by models that are trained
#
# More options: diet-mt bench speed --help. Leave the machine to it alone. Time on two cores: about
# 10 minutes for each size (SIZES=tiny for the first alone).
set -euo pipefail

SIZES=${SIZES:-tiny base}
DATA=${DATA:-}
RESULTS=${RESULTS:-results/benchmark}
PYTHON=${PYTHON:-python3}

# shellcheck source=scripts/messages.sh
. "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

case ${1:-} in -h | --help) header && exit ;; esac
[ $# -ge 1 ] || die "usage: $0 NAME [options of diet-mt bench speed]"
name=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
out=$RESULTS/$name
mkdir -p "$(dirname "$out")"
: >"$out.jsonl.part"
for size in $SIZES; do
  options=(--size "$size" ${DATA:+--data "$DATA"})
  # A step of base costs some twenty times as much: fewer turns, smaller batches, and in training
  # not all systems in memory at a time.
  [ "$size" = tiny ] || options+=(--rounds 5 --warmup 1 --batches 1 --train-tokens 2048 --decode-tokens 512 --together 4)
  "$PYTHON" -m diet_mt.bench.benchmark "${options[@]}" "$@" >>"$out.jsonl.part"
done
mv "$out.jsonl.part" "$out.jsonl"
"$PYTHON" -m diet_mt.bench.benchmark --table "$RESULTS"/*.jsonl >"$RESULTS.md.part"
mv "$RESULTS.md.part" "$RESULTS.md"
cat "$RESULTS.md"
