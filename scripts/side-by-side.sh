# shellcheck shell=bash
# What the comparisons share: several trainings at a time, with a word on each of them every few
# seconds, then their evaluation. Sourced, not run, after the settings:
#   CHECKPOINTS  folder for the trainings, one folder NAME.SEED for each run NAME:SEED
#   JOBS         trainings and evaluations at a time, with one thread each
#   BIN, SIZE    data and size of the architectures, for train_one and evaluate_one as they stand
#                here; a script may define both anew

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STATUS_SECONDS=${STATUS_SECONDS:-20}
# Trainings share the cores; more threads would only wait for each other.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

# shellcheck source=scripts/messages.sh
. "$HERE/messages.sh"

# folder_of NAME:SEED
folder_of() { printf '%s' "$CHECKPOINTS/${1%:*}.${1#*:}"; }

# status_of RUN: one line from the end of its log, or nothing.
status_of() {
  local log line
  log=$(folder_of "$1")/train.log
  line=$(tail -n 200 "$log" 2>/dev/null | sed -n \
    's/.*train_inner | epoch 0*\([0-9]*\):.* loss=\([0-9.]*\),.* num_updates=\([0-9]*\),.*/epoch \1, \3 updates, loss \2/p' |
    tail -n 1)
  say "   [$((SECONDS / 60)) min $((SECONDS % 60)) s] ${1%:*}, seed ${1#*:}: ${line:-starting}"
}

# watch RUN...: status lines of those under way, until killed.
watch() {
  local run folder
  # Without its output closed, sleep would outlive the killed loop and hold on to the terminal.
  while sleep "$STATUS_SECONDS" >/dev/null 2>&1; do
    for run; do
      folder=$(folder_of "$run")
      if [ -f "$folder/train.log" ] && [ ! -f "$folder/done" ]; then status_of "$run"; fi
    done
  done
}

# train_one RUN: one training, in folder_of RUN; done again, it continues.
train_one() { "$HERE/train.sh" "$BIN" "${1%:*}_$SIZE" "${1#*:}" "$(folder_of "$1")"; }

# evaluate_one RUN: results go to RESULTS, under the name TEST_SET.
evaluate_one() { "$HERE/evaluate.sh" "$BIN" "$(folder_of "$1")"; }

# side_by_side FUNCTION RUN...: calls the function for each run, JOBS at a time.
side_by_side() {
  local function=$1
  shift
  # They are called in shells of their own.
  export HERE CHECKPOINTS BIN=${BIN:-} SIZE=${SIZE:-}
  export -f folder_of train_one evaluate_one
  # shellcheck disable=SC2016  # for that shell to expand
  printf '%s\0' "$@" |
    xargs -0 -n 1 -P "$JOBS" bash -c 'set -euo pipefail; "$0" "$1"' "$function"
}

# train_all RUN...
train_all() {
  local watcher run folder refused=
  watch "$@" &
  watcher=$!
  # shellcheck disable=SC2064  # the process of now
  trap "kill $watcher 2>/dev/null || true" EXIT
  # What a training prints stands in its train.log.
  side_by_side train_one "$@" >/dev/null || refused=1
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  trap - EXIT
  for run; do
    folder=$(folder_of "$run")
    [ -f "$folder/done" ] ||
      die "training ${run%:*} stopped: $(tail -n 1 "$folder/train.log" 2>/dev/null) (all of it in $folder/train.log)"
  done
  # Finished before, by another command.
  [ -z "$refused" ] || die "not every training could be run, see above"
}

# evaluate_all RUN...
evaluate_all() { side_by_side evaluate_one "$@" >&2 || die "an evaluation failed, see above"; }
