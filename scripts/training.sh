# shellcheck shell=bash
# How every training is run: it leaves its command, log and revision beside its checkpoints, goes on
# where it was, and is refused where another command began it. Sourced, not run, after messages.sh.

LAUNCH=${LAUNCH:-}                 # options that say where to run, not what: they are not kept
NODE_RANK=${NODE_RANK:-0}          # of this machine; the first one keeps the books
DRY_RUN=${DRY_RUN:-}               # 1: print the command and do nothing

# run_training ROOT SAVE_DIR COMMAND...: ROOT is the checkout. Makes SAVE_DIR/command, revision,
# train.log and, when the training is complete, done. A folder without checkpoints, where nothing was
# ever trained, may be begun anew with another command.
run_training() {
  local root=$1 save=$2 now written
  local -a launch
  shift 2
  read -r -a launch <<<"$LAUNCH"
  now=$(printf '%q ' "$@")
  if [ -n "$DRY_RUN" ]; then
    printf '%s\n' "$now${launch[*]}"
    return
  fi
  if [ -f "$save/command" ] && _has_begun "$save" &&
    [ "$(_without_checkout <"$save/command")" != "$(_without_checkout <<<"$now")" ]; then
    die "$save was begun with another command (see $save/command); remove it or choose another folder"
  fi
  if [ -f "$save/done" ]; then
    echo "train: $save is finished"
    return
  fi
  mkdir -p "$save"
  if [ "$NODE_RANK" != 0 ]; then
    exec "$@" "${launch[@]}" >>"$save/train.$NODE_RANK.log" 2>&1
  fi
  printf '%s' "$now" >"$save/command"
  written=$(wc -c 2>/dev/null <"$save/train.log" || echo 0)
  { [ -f "$save/revision" ] && _has_begun "$save"; } ||
    git -C "$root" describe --always --dirty >"$save/revision" 2>/dev/null || true
  "$@" "${launch[@]}" 2>&1 | tee -a "$save/train.log"
  # fairseq ends as well as ever where its time is up.
  if tail -c "+$((written + 1))" "$save/train.log" | grep -q 'due to cumulative_training_time'; then
    die "$save: stopped by --stop-time-hours before its end; more hours in LAUNCH continue it"
  fi
  touch "$save/done"
}

_has_begun() { [ -f "$1/done" ] || compgen -G "$1/checkpoint*.pt" >/dev/null; }

# The checkout itself may have moved.
_without_checkout() { sed 's/--user-dir [^ ]*//'; }

# use_precision PRECISION: sets precision, fairseq's options for it.
# shellcheck disable=SC2034  # for those who source this
use_precision() {
  case $1 in
    fp32) precision=() ;;
    fp16 | bf16) precision=("--$1") ;;
    *) die "PRECISION '$1': choose fp32, fp16 or bf16" ;;
  esac
}

# save_every UPDATES KEEP: sets intervals, fairseq's options to validate and save then, and not after
# each epoch, and to keep so many of those checkpoints; UPDATES empty: after each epoch.
# shellcheck disable=SC2034  # for those who source this
save_every() {
  intervals=()
  [ -z "$1" ] ||
    intervals=(--save-interval-updates "$1" --validate-interval-updates "$1"
      --keep-interval-updates "$2" --save-interval 1000000 --validate-interval 1000000)
}
