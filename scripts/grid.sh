# shellcheck shell=bash
# A grid of fine-tuning runs: learning rates x epochs x seeds, several at a time, each evaluated at
# its best checkpoint. Sourced, not run. The recipe calls use_grid, sets TASK, DATA, SYSTEM,
# PRETRAINED, CHECKPOINTS and SPLITS (the first of them says which run is best), and calls run_grid.

GRID=${GRID:-paper}                # or small: for tiny models on a small machine
export SEGMENTS=${SEGMENTS:-per-head} # none, input or per-head, added to the pretrained checkpoint
JOBS=${JOBS:-2}                    # runs at a time, one thread each
RESULTS=${RESULTS:-results}        # rows go to RESULTS/tasks/TASK.jsonl
KEEP=${KEEP:-1}                    # 0: remove the checkpoints of all runs but the best
PYTHON=${PYTHON:-python3}

# shellcheck source=scripts/side-by-side.sh
. "$(dirname "${BASH_SOURCE[0]}")/side-by-side.sh"
# shellcheck source=scripts/numbers.sh
. "$HERE/numbers.sh"

# use_grid EPOCHS SMALL_EPOCHS: the settings of the paper's table 7, with these epochs, or of a small
# grid; each can be set by itself: LRS, EPOCHS, SEEDS.
use_grid() {
  case $GRID in
    paper) LRS=${LRS:-1e-5 2e-5 3e-5 4e-5} EPOCHS=${EPOCHS:-$1} SEEDS=${SEEDS:-1 2 3 4 5} ;;
    # Small models want larger rates: Turc et al. 2019, arXiv:1908.08962, tune up to 3e-4.
    small) LRS=${LRS:-1e-4 3e-4} EPOCHS=${EPOCHS:-$2} SEEDS=${SEEDS:-1 2 3} ;;
    *) die "GRID '$GRID': choose paper or small" ;;
  esac
}

# Runs are lrLR.epochsEPOCHS:SEED.
grid_runs() {
  local lr epochs seed
  for lr in $LRS; do
    for epochs in $EPOCHS; do
      for seed in $SEEDS; do printf 'lr%s.epochs%s:%s\n' "$lr" "$epochs" "$seed"; done
    done
  done
}

train_one() {
  local name=${1%:*} lr options=()
  lr=${name#lr}
  [ -z "$MORE" ] || mapfile -t options <<<"$MORE"
  LR=${lr%.epochs*} EPOCHS=${name##*.epochs} "$HERE/finetune.sh" "$DATA" "$PRETRAINED" "${1#*:}" \
    "$(folder_of "$1")" "${options[@]}"
}

# predict_run FOLDER SPLIT...: evaluates a run, and says the scores of each split on a line. A recipe
# may define it anew, after this file.
predict_run() {
  local folder=$1
  shift
  "$PYTHON" -m diet_mt predict "$DATA" "$folder/checkpoint_best.pt" --task "$TASK" \
    --system "$SYSTEM" --split "$@" --pretrained "$PRETRAINED" \
    --results "$RESULTS/tasks"
}

# evaluate_one RUN: on those of SPLITS that it has no scores of.
evaluate_one() {
  local folder split new=()
  folder=$(folder_of "$1")
  for split in $SPLITS; do
    cut -f 2 "$folder/scores" 2>/dev/null | grep -qxF "$split" || new+=("$split")
  done
  if [ ${#new[@]} -gt 0 ]; then
    [ -f "$folder/checkpoint_best.pt" ] ||
      die "$folder: its checkpoint was removed (KEEP=0), so ${new[*]} cannot be scored; train it again"
    rm -f "$folder/scores.part"
    [ ! -f "$folder/scores" ] || cp "$folder/scores" "$folder/scores.part"
    predict_run "$folder" "${new[@]}" >>"$folder/scores.part"
    mv "$folder/scores.part" "$folder/scores"
  fi
  tidy_run "$1"
}

# tidy_run RUN: removes what a complete run does not need, and says its scores.
tidy_run() {
  local folder
  folder=$(folder_of "$1")
  rm -f "$folder"/checkpoint_last.pt "$folder"/checkpoint_[0-9]*_[0-9]*.pt
  sed "s/^/   ${1%:*}, seed ${1#*:}: /" "$folder/scores"
}

# best_of RUN...: the run whose first split scored best by the first metric.
best_of() {
  local run
  for run; do
    printf '%s\t%s\n' "$(head -n 1 "$(folder_of "$run")/scores" | cut -f 4 | cut -d ' ' -f 2)" "$run"
  done | LC_ALL=C sort -k 1,1gr -s | head -n 1 | cut -f 2
}

# run_grid [OPTION...]: trains, with these options of fairseq-train, evaluates, tidies up. Sets BEST to
# the folder of the best run.
run_grid() {
  local run runs folder
  export PYTHONPATH="$HERE/..${PYTHONPATH:+:$PYTHONPATH}"
  export DATA PRETRAINED TASK SYSTEM SPLITS RESULTS PYTHON
  MORE=$(printf '%s\n' "$@")
  export MORE
  export -f predict_run tidy_run say die
  need_positive JOBS
  [ -f "$PRETRAINED" ] || die "$PRETRAINED: no such checkpoint; pretrain first, with scripts/pretrain.sh"
  TASK_OPTIONS=$("$PYTHON" -m diet_mt.evaluation.finetuning "$TASK" "$PRETRAINED" --system "$SYSTEM") || exit 2
  export TASK_OPTIONS
  mapfile -t runs < <(grid_runs)
  if [ -n "${DRY_RUN:-}" ]; then
    for run in "${runs[@]}"; do train_one "$run"; done
    exit 0
  fi
  say "== fine-tuning $SYSTEM on $TASK: ${#runs[@]} runs, $JOBS at a time"
  train_all "${runs[@]}"
  say "== evaluating"
  evaluate_all "${runs[@]}"
  BEST=$(best_of "${runs[@]}")
  say "== the best run is ${BEST%:*}, seed ${BEST#*:}"
  BEST=$(folder_of "$BEST")
  for run in "${runs[@]}"; do
    folder=$(folder_of "$run")
    [ "$KEEP" != 0 ] || [ "$folder" = "$BEST" ] || rm -f "$folder"/checkpoint_best.pt
  done
}
