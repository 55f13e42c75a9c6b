# shellcheck shell=bash
# What the set-up scripts share. Sourced, not run.

# Progress and errors go to stderr.
say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 2
}

# python_version PYTHON: "3.11", or nothing if PYTHON does not run.
python_version() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

# python_at_least PYTHON MAJOR MINOR
python_at_least() {
  "$1" -c "import sys; sys.exit(sys.version_info[:2] < ($2, $3))" 2>/dev/null
}

# need_compiler PYTHON: stops unless a C++ compiler finds the headers of this Python.
need_compiler() {
  local compiler=${CXX:-} headers
  if [ -z "$compiler" ]; then
    for compiler in g++ c++ clang++ none; do
      if command -v "$compiler" >/dev/null; then break; fi
    done
  fi
  # CXX may carry options or a launcher ("ccache g++"): look for its first word.
  command -v "${compiler%% *}" >/dev/null ||
    die "no C++ compiler (\$CXX, g++, c++ or clang++), and fairseq is built from source;" \
      "install one, for example: apt-get install g++"
  headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  # shellcheck disable=SC2086  # CXX is split on purpose, see above
  printf '#include <Python.h>\n#include <vector>\n' |
    $compiler -x c++ -fsyntax-only -I "$headers" - >/dev/null 2>&1 ||
    die "$compiler cannot compile against Python's headers in $headers; install them," \
      "for example: apt-get install g++ python3-dev"
}

# make_venv PYTHON FOLDER: a virtual environment with pip in FOLDER. One that is half made is made
# again, and so is one that was copied or moved, because its commands name the place of their birth.
make_venv() {
  local python=$1 folder=$2 here born=
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "$python lacks venv or ensurepip; install them, for example: apt-get install python3-venv"
  if [ -e "$folder" ]; then
    here=$(cd "$folder" && pwd -P) || die "$folder is in the way: not a folder; remove or rename it"
    if [ -f "$folder/.made-in" ]; then born=$(cat "$folder/.made-in"); fi
    if [ -n "$born" ] && [ "$born" != "$here" ]; then
      say "$folder was made as $born: making it again"
      rm -rf "$folder"
    elif "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
      printf '%s\n' "$here" >"$folder/.made-in"
      return 0
    elif [ ! -f "$folder/pyvenv.cfg" ] && [ -n "$(ls -A "$folder")" ]; then
      die "$folder is in the way: not a virtual environment; remove or rename it"
    else
      say "$folder is not complete: making it again"
      rm -rf "$folder"
    fi
  fi
  say "making $folder with Python $(python_version "$python")"
  "$python" -m venv "$folder"
  (cd "$folder" && pwd -P >.made-in)
}

# checksum_of FILE...: one line that changes when one of them does.
checksum_of() { cat "$@" | cksum; }
