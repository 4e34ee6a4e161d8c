# SPDX-License-Identifier: Apache-2.0
#
# Sourced by ./quickstart and ./check: system packages, build, Python. A step whose result is there does nothing.
# Each says what it does before it begins.
#   setup_packages FILE...   installs the Debian packages that the files name and this machine lacks
#   setup_build [OPTION...]  configures and builds into build/
#   setup_python [EXTRA]     makes .venv with iocast and its dependencies
#   setup_page               builds the simulator for pages in the background, where emscripten is there

unset PYTHONDONTWRITEBYTECODE # Python is started many times; each would compile iocast anew

step() { printf '\n== %s\n' "$*" >&2; }
stop() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

setup_packages() {
  local missing=() package
  command -v dpkg-query >/dev/null || stop "this is no Debian or Ubuntu; install the packages named in \
packaging/*.txt with your package manager, then build with cmake (see README.md)."
  for package in $(sed 's/#.*//' "$@"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      stop "these packages are missing and can't be installed without root: ${missing[*]}"
    as_root=(sudo)
  fi
  step "Installing ${missing[*]}"
  local log
  log=$(mktemp)
  {
    "${as_root[@]}" apt-get update &&
      DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; stop "apt-get could not install ${missing[*]}; its last words are above."; }
  rm -f "$log"
}

# Two set-ups at a time would take each other's files away.
take_turns() { ! command -v flock >/dev/null || flock 9; }

setup_build() {
  local log=build/setup.log
  step "Building iocast-bench and iocast-sim in build/: compiling C++ takes minutes the first time; see $log"
  mkdir -p build
  (
    take_turns
    cmake -S . -B build -G Ninja "$@" >"$log" 2>&1 &&
      { cmake --build build --parallel "$(nproc)" || cmake --build build; } >>"$log" 2>&1 && exit
    tail -n 40 "$log" >&2
    stop "the build failed; its last words are above, all of them in $log."
  ) 9>build/.setting-up || exit
}

setup_python() {
  local wanted
  wanted=$(sha256sum pyproject.toml | cut -c1-16)${1:-}
  [ -x .venv/bin/iocast ] && [ -e ".venv/.has-$wanted" ] && return
  step "Setting up Python in .venv: pip fetches iocast's dependencies"
  mkdir -p .venv
  (
    take_turns
    [ -x .venv/bin/iocast ] && [ -e ".venv/.has-$wanted" ] && exit
    [ -x .venv/bin/python ] || python3 -m venv .venv ||
      stop "python3 can't make a virtual environment; install python3-venv."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".${1:-}" ||
      stop "pip could not install iocast and its dependencies."
    touch ".venv/.has-$wanted"
  ) 9>.venv/.setting-up || exit
}

# Nobody waits for it. IOCAST_PAGE=no leaves it out.
setup_page() {
  { command -v em++ >/dev/null && [ ! -e build/page/iocast-page.wasm ] && [ "${IOCAST_PAGE:-}" != no ]; } || return 0
  step "Building the simulator for pages in the background: it takes some minutes; see build/page.log"
  nohup nice -n 19 cmake --build build --target page >build/page.log 2>&1 </dev/null &
}
