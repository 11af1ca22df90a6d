#!/usr/bin/env bash
# Builds the libraries that wheels and packages have linked in, as static ones, below the folder that is named (build/static):
#
#   tools/static_deps.sh build/static
#
# Debian's packages hold simdjson, ISA-L, fmt and cpp-httplib as shared libraries only. Their sources come from the same release,
# with Debian's patches, by apt-get source; zstd and SQLite are there as static libraries. Headers stay those of the
# packages, but for cpp-httplib, whose whole code is in the one of its source: without OpenSSL, zlib and brotli, which a loopback
# server does not need. CMake finds all of it first when CMAKE_PREFIX_PATH and PKG_CONFIG_PATH name the folder.
# Idempotent; about a minute the first time.
set -euo pipefail
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
[ ! -e "$prefix/complete" ] || exit 0
CXX=${CXX:-clang++-19}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

needs=()
for tool in nasm dpkg-source make cc; do
  command -v "$tool" >/dev/null || needs+=("$tool")
done
if [ "${#needs[@]}" -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nasm dpkg-dev make gcc libc6-dev >/dev/null
fi

# The configured mirrors, asked for sources: lists of its own, so that the system's stay as they are.
mkdir -p "$work/parts" "$work/lists/partial"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ ! -s "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"$work/parts/$(basename "$file" .list).list"
done
for file in /etc/apt/sources.list.d/*.sources; do
  [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/$(basename "$file")"
done
apt=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::lists=$work/lists")
cd "$work"
apt-get "${apt[@]}" update
apt-get "${apt[@]}" source simdjson libisal cpp-httplib fmtlib 2>"$work/source.log" >&2 || {
  cat "$work/source.log" >&2
  exit 1
}

mkdir -p "$prefix"/{include,lib/pkgconfig,lib/cmake/simdjson,lib/cmake/fmt}

# target NAME LIBRARY DEFINITION: a CMake package with one static library, and the definition that Debian's has.
target() {
  cat >"$prefix/lib/cmake/$1/$1Config.cmake" <<CMAKE
if(NOT TARGET $1::$1)
  add_library($1::$1 STATIC IMPORTED GLOBAL)
  set_target_properties($1::$1 PROPERTIES IMPORTED_LOCATION "$prefix/lib/$2" INTERFACE_COMPILE_DEFINITIONS "$3")
endif()
CMAKE
}
"$CXX" -O2 -fPIC -std=c++17 -DSIMDJSON_THREADS_ENABLED=1 -c simdjson-*/singleheader/simdjson.cpp -o simdjson.o
ar rcs "$prefix/lib/libsimdjson.a" simdjson.o
target simdjson libsimdjson.a SIMDJSON_THREADS_ENABLED=1
"$CXX" -O2 -fPIC -std=c++17 -I"$(echo fmtlib-*/include)" -c fmtlib-*/src/format.cc -o fmt.o
ar rcs "$prefix/lib/libfmt.a" fmt.o
target fmt libfmt.a FMT_SHARED

make -s -C libisal-* -f Makefile.unx units="crc igzip" CC="cc -fPIC" lib >isal.log 2>&1 || { tail -n 20 isal.log >&2; exit 1; }
cp libisal-*/bin/isa-l.a "$prefix/lib/libisal.a"
cat >"$prefix/lib/pkgconfig/libisal.pc" <<PC
Name: libisal
Description: ISA-L, static
Version: $(pkg-config --modversion libisal)
Libs: -L$prefix/lib -lisal
PC

cp cpp-httplib-*/httplib.h "$prefix/include"
cat >"$prefix/lib/pkgconfig/cpp-httplib.pc" <<PC
Name: cpp-httplib
Description: cpp-httplib, header only
Version: $(sed -n 's/^#define CPPHTTPLIB_VERSION "\(.*\)"/\1/p' "$prefix/include/httplib.h" | head -1)
Libs: -pthread
Cflags: -I$prefix/include
PC

libraries=$(dirname "$(find /usr/lib -name libzstd.a | head -1)")
for name in zstd sqlite3; do
  [ -e "$libraries/lib$name.a" ] || { echo "static_deps: no lib$name.a: apt install lib$name-dev" >&2; exit 1; }
  cp "$libraries/lib$name.a" "$prefix/lib"
done
# What the licences of all that is linked in ask to be handed on with it.
for package in libsimdjson-dev libisal-dev libfmt-dev libcpp-httplib-dev libzstd-dev libsqlite3-dev libcli11-dev libtomlplusplus-dev \
  libprotozero-dev; do
  printf '==== %s\n\n' "$package"
  cat "/usr/share/doc/$package/copyright"
  echo
done >"$prefix/THIRD_PARTY_LICENSES.txt"
touch "$prefix/complete"
