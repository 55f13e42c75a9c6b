#!/usr/bin/env bash
# Trains the five base models of config/mixed.base.yaml in parallel on one GPU and decodes captions, news,
# office and all three, within a given time.
#
#   scripts/gpu-evidence.sh SECONDS OUT [OPTION...]
#   SIZE=tiny DATA=data/few scripts/gpu-evidence.sh 200 out --max-tokens 256
#
# All trainings have the same number of updates: the largest for which the slowest training has time, as
# measured in 100 updates of each. OPTION: options of fairseq-train, for all trainings.
#
# From     data/mixed.en-de, or DATA (diet-mt prepare mixed en-de); OUT: a folder
# Makes    OUT/gpu-evidence.log, OUT/gpu-evidence.tar.gz: rows, hypotheses, losses, logs
# Settings SIZE (base); UPDATES, instead of the measured number; DECODING, seconds for decoding (80);
#          JOBS, decodings at a time (one per core); PYTHON (python3)
set -euo pipefail
case " $* " in *" -h "* | *" --help "*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -ge 2 ] || { echo "error: SECONDS and OUT are needed; see $0 -h" >&2; exit 2; }

seconds=$1 out=$2
shift 2
data=${DATA:-data/mixed.en-de} size=${SIZE:-base} trials=100
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
# timeout signals the whole process group; tee ignores it, so that output continues.
exec > >(trap '' TERM INT && exec tee "$out/gpu-evidence.log") 2>&1

say() { printf '== %d s: %s\n' "$SECONDS" "$*"; }
# Called in the background: bash then handles signals at once, and $! is the process of Python.
mt() { exec "${PYTHON:-python3}" -m diet_mt "$@"; }

# Packs the results so far, whatever ends this script.
pack() {
  trap - EXIT
  jobs -rp | xargs -r kill 2>/dev/null || true
  say "packing"
  (cd "$work" && find . -path './train/*.log' -o -path './speed/*.log' -o -path './results/*' -type f |
    tar -czf "$out/gpu-evidence.tar.gz" --files-from -)
  rm -rf "$work"
  say "done: $(du -h "$out/gpu-evidence.tar.gz" | cut -f1)"
}
trap pack EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# Only the trainings of the sweep.
cat >"$work/trainings.yaml" <<EOF
extends: mixed.base
prepare: []
run: ["diet-mt train {data}/bin {system}_{size} --recipe {recipe} --seed {seed} --save-dir {folder} {options} {train_options}"]
report: []
EOF
train() { # FOLDER OPTION...
  local folder=$1 options
  shift
  options=$(printf '%s,' "$@")
  mt sweep "$work/trainings.yaml" --jobs 5 --set "data=$data" --set "size=$size" \
    --set "checkpoints=$folder" --set "train_options=[${options%,}]" &
  wait $!
}

updates=${UPDATES:-}
if [ -z "$updates" ]; then
  say "speed"
  train "$work/speed" "$@" --max-update $trials --log-interval $((trials / 4)) --no-save --disable-validation ||
    say "not all of them"
  # Updates per second in the third quarter, when all trainings run.
  rate=$(for log in "$work"/speed/*/train.log; do grep -o ' ups=[0-9.]*' "$log" | sed -n 3p; done |
    cut -d= -f2 | sort -n | tee /dev/stderr | head -1)
  # The start of a training takes as long as it took here, without the updates.
  updates=$(awk -v left=$((seconds - SECONDS - ${DECODING:-80})) -v took=$SECONDS -v rate="$rate" -v n=$trials \
    'BEGIN { start = took - n / rate; count = int(0.95 * rate * (left - start) / 50) * 50; if (count < 50) count = 50; print count }')
  say "the slowest does $rate updates a second, so $updates"
fi

say "training, $updates updates"
train "$work/train" "$@" --max-update "$updates" || say "not all of them: the others are decoded"

say "decoding"
mkdir -p "$work/decode" "$work/results/curves"
mt bench curves "$work"/train/* --loss --out "$work/results/curves/mixed.base" &
under_way=($!)
decode() { # FOLDER SET
  local set=$2 name=${1##*/} folder=$work/decode/${1##*/}.$2 words=()
  name=${name%.*}
  case $name in *.*) words+=("--system=$name") ;; esac
  if [ "$set" != all ]; then words+=(--source "$data/raw/$set.en" --reference "$data/raw/$set.de"); fi
  # In a copy of the folder, because each folder allows one decoding at a time.
  cp -rl "$1" "$folder"
  mt evaluate "$data/bin" "$folder" --test-set-name "$set" --results "$work/results" "${words[@]}"
}
folders=("$work"/train/*)
for set in all news office captions; do
  for folder in "${folders[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-$(nproc)}" ]; do wait -n || true; done
    OMP_NUM_THREADS=1 decode "$folder" "$set" &
    under_way+=($!)
  done
done
# A failed decoding has printed its error; the other rows remain. Without an id, wait would include tee.
for process in "${under_way[@]}"; do wait "$process" || true; done
say "$(cat "$work"/results/*.jsonl | wc -l) rows"
