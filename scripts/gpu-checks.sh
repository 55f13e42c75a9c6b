#!/usr/bin/env bash
# Measurements and tests that need a GPU, in five minutes: time and memory of training steps and speed of
# decoding, stock fairseq in turns with ours, and some of the tests for a GPU.
#
#   scripts/gpu-checks.sh                                         five minutes
#   scripts/gpu-checks.sh --only train --encodings diet_rel diet_abs --seconds 120
#   scripts/gpu-checks.sh --device cpu --size tiny                the same code, on small batches
#
# Options  --out FOLDER         log, rows and table (default gpu-checks)
#          --seconds N          for all parts (default 300)
#          --only PART...       machine, train (stock in fp16 and bf16, ours in bf16), decode, tests,
#                               fp16 (training, ours in fp16)
#          --encodings NAME...  default diet_rel diet_abs sinusoidal rotary
#          --size SIZE, --device cuda|cpu
#
# Each part gets a share of the remaining time; a part that fails or exceeds it does not stop the others.
# Exit status: number of parts that failed. Requires a python with the packages, also by PYTHONPATH alone.
# The rows have the format of results/benchmark.
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac

changed="cross_entropy or gradients or search_finds or captured or compiled or adam" # of tests/test_gpu.py, for pytest -k

fail() { echo "$0: $*" >&2; exit 64; }

out=gpu-checks total=300 size=base device=cuda
parts=(machine train decode tests fp16)
declare -A share=([machine]=7 [train]=50 [decode]=20 [tests]=15 [fp16]=20)
encodings=(diet_rel diet_abs sinusoidal rotary)
while (($#)); do
  option=$1 values=()
  shift
  while (($#)) && [[ $1 != --* ]]; do values+=("$1") && shift; done
  ((${#values[@]})) || fail "$option: no value"
  case $option in
    --out) out=${values[0]} ;;
    --seconds) total=${values[0]} ;;
    --only) parts=("${values[@]}") ;;
    --encodings) encodings=("${values[@]}") ;;
    --size) size=${values[0]} ;;
    --device) device=${values[0]} ;;
    *) fail "unknown option $option" ;;
  esac
done
for part in "${parts[@]}"; do [ -n "${share[$part]:-}" ] || fail "unknown part $part"; done
[[ $total =~ ^[1-9][0-9]{0,5}$ ]] || fail "--seconds $total: not a number of seconds"

mkdir -p "$out"
out=$(cd "$out" && pwd)
log=$out/log.txt
: >"$log"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
# Our systems are compiled in parallel.
export TORCHINDUCTOR_COMPILE_THREADS=${TORCHINDUCTOR_COMPILE_THREADS:-4}
if [ "$device" = cuda ]; then
  fp16=" --fp16" compile=" --compile" vocabulary=32768 rounds=5
  batches=(--train-tokens 16384 65536 4096 --lengths 16+15 24+22 30+32 40+36 46+48 64+60 80+72 100+96
    --lengths 32+32)
  sentences=(512 64 1024)
else # fairseq's --fp16 trains on GPUs alone
  fp16="" compile="" vocabulary=60 rounds=1
  batches=(--train-tokens 64 --lengths 8+7 6+9)
  sentences=(4 8)
fi

# In the background, so that a signal ends the script and the running part at once.
bounded() { timeout --kill-after=5 "$limit" "$@" & wait $!; }
trap 'jobs -rp | xargs -r kill; exit 143' TERM INT

# NAME ARGUMENTS...: writes the output of diet-mt bench speed to NAME.jsonl.
speed() {
  bounded python -m diet_mt bench speed --device "$device" --size "$size" --vocabulary "$vocabulary" \
    --threads 1 --batches 1 --rounds "$rounds" --warmup 0 --dropout 0.1 --seconds $((limit * 17 / 20 + 1)) \
    "${@:2}" >"$out/$1.jsonl"
}

# NAME PRECISION: training steps, ours with and without --compile.
train() {
  local systems=("stock$fp16" "stock --bf16" "${encodings[@]/%/$2}")
  [ -z "$compile" ] || systems+=("${encodings[@]/%/$2$compile}")
  speed "$1" --measures train "${batches[@]}" --systems "${systems[@]}"
}

part() {
  local tests=(-n 12)
  [ "$device" = cuda ] || tests=(--collect-only)
  case $1 in
    machine)
      { [ "$device" = cpu ] || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; } &&
        bounded python -c 'import sys, torch; print("torch", torch.__version__, "Python", sys.version)'
      ;;
    train) train train " --bf16" ;;
    fp16) train fp16 "$fp16" ;;
    decode) speed decode --measures decode --decode-sentences "${sentences[@]}" \
      --systems "stock$fp16" "${encodings[@]/%/$fp16}" ;;
    tests) bounded python -m pytest -q -m gpu "${tests[@]}" -k "$changed" tests/test_gpu.py ;;
  esac
}

failed=() left=0
for name in "${parts[@]}"; do left=$((left + share[$name])); done
for name in "${parts[@]}"; do
  limit=$(((total - SECONDS) * share[$name] / left))
  ((limit > 0)) || limit=1
  left=$((left - share[$name])) start=$SECONDS status=0
  part "$name" >>"$log" 2>&1 || status=$?
  ((status == 0)) || failed+=("$name")
  echo "== $name: $((SECONDS - start)) of $limit seconds, status $status" | tee -a "$log"
done
find "$out" -name '*.jsonl' -empty -delete
rows=("$out"/*.jsonl)
[ ! -f "${rows[0]}" ] || python results/benchmark/table.py "${rows[@]}" | tee "$out/table.md" || failed+=(table)
((${#failed[@]} == 0)) || echo "failed: ${failed[*]}; see $log" >&2
exit ${#failed[@]}
