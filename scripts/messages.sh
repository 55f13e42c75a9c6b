# shellcheck shell=bash
# How scripts speak: progress and errors on stderr. Sourced, not run.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 2
}

# header: what a script says of itself at its top, for --help.
header() { sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0"; }

# from_here NAME...: of the folders in these settings, those that are given relative to where the
# user stands, in full: for a script that then goes elsewhere.
from_here() {
  local name
  for name; do
    case ${!name:-/} in # what is not set stays so
      /*) ;;
      *) export "$name=$PWD/${!name}" ;;
    esac
  done
}
