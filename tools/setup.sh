#!/usr/bin/env bash
# Installs what the project needs on a bare Debian 12: apt packages that are missing, .venv with the packages of
# tools/requirements.txt, and viewer/node_modules with those of its lock file. Idempotent; takes a fraction of a second when nothing is missing. Runs as root or with sudo.
# With the argument `native` only the apt packages: enough to compile C++ while the rest is fetched.
set -euo pipefail
cd "$(dirname "$0")/.."

apt_packages=(
  # compiler, sanitizers, layout, lint
  clang-19 lld-19 libclang-rt-19-dev clang-format-19 clang-tidy-19
  # build
  cmake ninja-build ccache pkg-config git
  # libraries, each used by the rooms that src/LAYERS names
  libsimdjson-dev libisal-dev libzstd-dev libcli11-dev libfmt-dev libsqlite3-dev libprotozero-dev libcpp-httplib-dev libtomlplusplus-dev libgtest-dev
  # native frames in stacks of running programs; looked for at run time
  libdw1
  # protoc: the tests decode the Perfetto export with it
  protobuf-compiler
  # Python: venv and headers; certificates for pip
  python3 python3-venv python3-dev ca-certificates
)

# Two makes may run at once: the second waits for the first.
exec 9>"${TMPDIR:-/tmp}/firelane-setup-$(id -u).lock"
flock 9

missing=()
for package in "${apt_packages[@]}"; do
  # Virtual or absent packages make dpkg-query fail: both mean "not installed".
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
# By what they bring: Node may come from elsewhere (then npm is in the same package), Chromium under another name.
command -v npm >/dev/null || missing+=(nodejs npm)
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || [ -n "${CHROMIUM:-}" ] || missing+=(chromium-headless-shell)
if [ "${#missing[@]}" -gt 0 ]; then
  echo "setup: installing ${missing[*]}" >&2
  command -v apt-get >/dev/null || {
    echo "setup: no apt-get here; install what matches these Debian 12 packages by hand: ${missing[*]}" >&2
    exit 1
  }
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "setup: needs root: run as root, install sudo, or run: apt-get install ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  log=$(mktemp)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" \
    >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; the whole log is $log" >&2
    exit 1
  }
  rm -f "$log"
fi

[ "${1:-}" != native ] || exit 0

# The stamp holds what was installed, so that a changed pin or another Python installs again.
stamp=.venv/firelane-requirements.stamp
wanted=$(python3 --version; sha256sum <tools/requirements.txt)
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "setup: installing tools/requirements.txt into .venv (torch is large: this takes minutes once)" >&2
  [ -x .venv/bin/python ] || python3 -m venv .venv
  # uv unpacks the five gigabytes of torch and CUDA in a third of pip's time, and a second checkout links them from its cache.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "$(grep -m 1 "^uv==" tools/requirements.txt)" >&2
  index=$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)
  .venv/bin/uv pip install --quiet --native-tls --python .venv/bin/python ${index:+--default-index "$index"} \
    -r tools/requirements.txt >&2 ||
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tools/requirements.txt >&2
  printf '%s\n' "$wanted" >"$stamp"
fi

# The viewer's packages, when the lock file is another than the one installed.
stamp=viewer/node_modules/firelane-lock.stamp
wanted=$(node --version; sha256sum <viewer/package-lock.json)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  echo "setup: installing viewer/node_modules" >&2
  npm ci --prefix viewer --no-audit --no-fund --loglevel=error >&2
  printf '%s\n' "$wanted" >"$stamp"
fi
