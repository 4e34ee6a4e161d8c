#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   packaging/offline.sh [--simgrid VERSION] [--extra NAME] OUT.tar.gz
#
# Makes an archive for machines without internet: the committed sources, wheels of the toolkit and of all that it needs,
# for the Python and the processor of this machine, and with --simgrid that version's sources, for systems that have no
# package of it. --extra test adds the packages of the tests. Needs git, Python with venv, and PyPI. In the archive,
# ./install compares all files with their checksums and makes .venv from the wheels alone.
set -euo pipefail
cd "$(dirname "$0")/.."

stop() { printf 'offline.sh: %s\n' "$*" >&2; exit "${code:-1}"; }
simgrid= extra= out=
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '4,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --simgrid) simgrid=${2:?--simgrid wants a version}; shift ;;
    --extra) extra=[${2:?--extra wants a name}]; shift ;;
    -*) code=2 stop "there is no option $1; see packaging/offline.sh --help." ;;
    *) [ -z "$out" ] || code=2 stop "one output, please; $out and $1 are named."; out=$1 ;;
  esac
  shift
done
[ -n "$out" ] || code=2 stop "name the archive to write; see packaging/offline.sh --help."
[ ! -e "$out" ] || code=2 stop "$out exists already; nothing is overwritten."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
name=iocast-$version
mkdir "$place/$name" "$place/$name/wheels"
git archive --prefix="$name/source/" HEAD | tar -x -C "$place"
python3 -m venv "$place/python"
"$place/python/bin/python" -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$place/$name/wheels" \
  "$place/$name/source$extra" || stop "the wheels could not be made; pip's words are above."
rm -rf "$place/$name/source/build"
if [ -n "$simgrid" ]; then
  mkdir "$place/$name/simgrid"
  "$place/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$place/$name/simgrid" "simgrid==$simgrid" || stop "the sources of SimGrid $simgrid could not be fetched."
fi
python=$("$place/python/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
sed "s/EXTRA/$extra/; s/PACKED/$python/g" >"$place/$name/install" <<'INSTALL'
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#   ./install [PYTHON]   makes .venv with iocast from wheels/, without a network
set -eu
cd "$(dirname "$0")"
stop() { echo "install: $*" >&2; exit 1; }
sha256sum --check --quiet SHA256SUMS || stop "The files above are not as they were packed; copy the archive again."
python=${1:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = PACKED ] || stop "The wheels are for Python PACKED, and $python is $version; see ./install PYTHON."
"$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links wheels "iocastEXTRA"
.venv/bin/iocast --help >/dev/null
echo "Installed: $(pwd)/.venv/bin/iocast"
INSTALL
chmod +x "$place/$name/install"
(cd "$place/$name" && find . -type f -exec sha256sum {} + | sort -k 2 >"$place/sums" && mv "$place/sums" SHA256SUMS)
tar -czf "$out" -C "$place" "$name"
printf '%s: %s, %d wheels.\n' "$out" "$(du -h "$out" | cut -f1)" "$(ls "$place/$name/wheels" | wc -l)"
