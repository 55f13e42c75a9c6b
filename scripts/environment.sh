# shellcheck shell=bash
# Functions of the set-up scripts. Sourced, not run.

# Progress and errors go to stderr.
say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 2
}

# python_version PYTHON: prints "3.11", or nothing if PYTHON does not run.
python_version() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

# python_at_least PYTHON MAJOR MINOR: whether its version is at least MAJOR.MINOR.
python_at_least() {
  "$1" -c "import sys; sys.exit(sys.version_info[:2] < ($2, $3))" 2>/dev/null
}

# need_compiler PYTHON: exits unless a C++ compiler finds the headers of this Python.
need_compiler() {
  local compiler=${CXX:-} headers
  if [ -z "$compiler" ]; then
    for compiler in g++ c++ clang++ none; do
      if command -v "$compiler" >/dev/null; then break; fi
    done
  fi
  # CXX may contain options or a launcher ("ccache g++"): the first word is the program.
  command -v "${compiler%% *}" >/dev/null ||
    die "no C++ compiler (\$CXX, g++, c++ or clang++), and fairseq is built from source;" \
      "install one, for example: apt-get install g++"
  headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  # shellcheck disable=SC2086  # CXX is split into words, see above
  printf '#include <Python.h>\n#include <vector>\n' |
    $compiler -x c++ -fsyntax-only -I "$headers" - >/dev/null 2>&1 ||
    die "$compiler cannot compile against Python's headers in $headers; install them," \
      "for example: apt-get install g++ python3-dev"
}

# make_venv PYTHON FOLDER: creates a virtual environment with pip in FOLDER. An incomplete one is created
# again, and so is one that was copied or moved, because its commands contain the original path.
make_venv() {
  local python=$1 folder=$2 here born=
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    die "$python lacks venv or ensurepip; install them, for example: apt-get install python3-venv"
  if [ -e "$folder" ]; then
    here=$(cd "$folder" && pwd -P) || die "$folder is in the way: not a folder; remove or rename it"
    if [ -f "$folder/.made-in" ]; then born=$(cat "$folder/.made-in"); fi
    if [ -n "$born" ] && [ "$born" != "$here" ]; then
      say "$folder was created as $born: creating it again"
      rm -rf "$folder"
    elif "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
      printf '%s\n' "$here" >"$folder/.made-in"
      return 0
    elif [ ! -f "$folder/pyvenv.cfg" ] && [ -n "$(ls -A "$folder")" ]; then
      die "$folder is in the way: not a virtual environment; remove or rename it"
    else
      say "$folder is incomplete: creating it again"
      rm -rf "$folder"
    fi
  fi
  say "creating $folder with Python $(python_version "$python")"
  "$python" -m venv "$folder"
  (cd "$folder" && pwd -P >.made-in)
}

# checksum_of FILE...: prints a line that changes if a file does.
checksum_of() { cat "$@" | cksum; }
