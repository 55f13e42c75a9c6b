# shellcheck shell=bash
# How scripts speak: progress and errors on stderr. Sourced, not run.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 2
}
