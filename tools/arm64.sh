#!/usr/bin/env bash
# Compiles everything for aarch64 Linux (Grace, Graviton) with warnings as errors, and runs unit tests by QEMU's user-mode emulation:
#
#   tools/arm64.sh                         # the command, all rooms but those that need torch, and their unit tests
#   tools/arm64.sh base format model       # the tests of these rooms only
#
# Libraries and headers are Debian's arm64 packages, unpacked into build/arm64-root and not installed; clang compiles for any machine.
# Emulation is ten times slower than a machine, reads no CUDA, and cannot run what looks into other processes.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/arm64-root
build=build/arm64

if ! command -v qemu-aarch64-static >/dev/null; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static >/dev/null
fi

# The configured mirrors of Debian, asked for another architecture, with a state of their own: the system's stays as it is.
if [ ! -e "$root/complete" ]; then
  state=$(mktemp -d)
  trap 'rm -rf "$state"' EXIT
  chmod 755 "$state"
  mkdir -p "$state"/{parts,lists/partial,cache/archives/partial} "$root"
  touch "$state/status"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian*; do
    [ ! -s "$file" ] || cp "$file" "$state/parts/"
  done
  apt=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc::sourcelist=/dev/null
    -o "Dir::Etc::sourceparts=$state/parts" -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status"
    -o "Dir::Cache=$state/cache")
  apt-get "${apt[@]}" update
  apt-get "${apt[@]}" install -y --no-install-recommends --download-only libc6-dev libstdc++-12-dev libsimdjson-dev libisal-dev \
    libzstd-dev libcli11-dev libfmt-dev libsqlite3-dev libprotozero-dev libcpp-httplib-dev libtomlplusplus-dev libgtest-dev >/dev/null
  for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  touch "$root/complete"
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/tools/cmake/arm64.cmake" -DFIRELANE_SYSROOT="$root" \
  -DCMAKE_BUILD_TYPE=Release >"$build.log"
targets=(firelane unit_tests)
wanted='.*'
if [ $# -gt 0 ]; then
  targets=()
  wanted=$(IFS='|'; echo "$*")
  for room in "$@"; do targets+=("firelane_${room//\//_}_test"); done
fi
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${targets[@]}"

# Left out, because emulation is no machine: each thread costs QEMU's own process 0.3 MB for good (a test of the recorder counts memory),
# and a process is not where /proc says that it is (tests of stacks of other processes).
export GTEST_FILTER='-Load.a_thousand_sessions_leave_nothing_behind'
ctest --test-dir "$build" --output-on-failure -j "${JOBS:-$(nproc)}" -R "^units[.]($wanted)\$"
tools/count_units.sh "$build"
