# shellcheck shell=bash
# Settings that must be numbers: each of these stops, naming the first setting that is not what it
# should be. Sourced, not run, after messages.sh.

# need_positive NAME...: 1, 2, 3 and so on.
need_positive() { _need '^[1-9][0-9]*$' 'a positive number' "$@"; }

# need_numbers NAME...: the same, or 0.
need_numbers() { _need '^[0-9]+$' 'a number' "$@"; }

# need_share NAME...: from 0 to 1.
need_share() { _need '^(0|1|0?\.[0-9]+|[01]\.0*|0\.[0-9]*)$' 'from 0 to 1' "$@"; }

_need() {
  local pattern=$1 what=$2 name
  shift 2
  for name; do
    [[ ${!name} =~ $pattern ]] || die "$name must be $what, got '${!name}'"
  done
}
