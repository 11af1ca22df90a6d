#!/usr/bin/env bash
# The command without Python, for every x86-64 Linux: dist/firelane-VERSION-linux-x86_64.tar.gz with one binary that is linked
# statically, C library included, and a .deb of the same. Only `firelane record` needs the Python package beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(firelane VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
machine=$(uname -m)
build=build/package
tools/static_deps.sh build/static
static=$PWD/build/static

export PKG_CONFIG_PATH=$static/lib/pkgconfig CMAKE_PREFIX_PATH=$static
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="${CXX:-clang++-19}" -DFIRELANE_TESTS=OFF \
  -DCMAKE_EXE_LINKER_FLAGS="-static -Wl,-s" >"$build.log"
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target firelane >>"$build.log" || {
  tail -n 30 "$build.log" >&2
  exit 1
}
if readelf -lW "$build/firelane" | grep -q INTERP; then
  echo "package: $build/firelane is not static" >&2
  exit 1
fi

root=$build/root
rm -rf "$root"
name=firelane-$version-linux-$machine
mkdir -p dist "$root/$name" "$root/deb/DEBIAN" "$root/deb/usr/bin" "$root/deb/usr/share/doc/firelane" \
  "$root/deb/usr/share/bash-completion/completions" "$root/deb/usr/share/zsh/vendor-completions" \
  "$root/deb/usr/share/fish/vendor_completions.d"
cp "$build/firelane" LICENSE README.md CHANGELOG.md "$static/THIRD_PARTY_LICENSES.txt" "$root/$name"
tar -C "$root" --owner=0 --group=0 --numeric-owner -czf "dist/$name.tar.gz" "$name"

cp "$build/firelane" "$root/deb/usr/bin"
cat LICENSE "$static/THIRD_PARTY_LICENSES.txt" >"$root/deb/usr/share/doc/firelane/copyright"
"$build/firelane" completion bash >"$root/deb/usr/share/bash-completion/completions/firelane"
"$build/firelane" completion zsh >"$root/deb/usr/share/zsh/vendor-completions/_firelane"
"$build/firelane" completion fish >"$root/deb/usr/share/fish/vendor_completions.d/firelane.fish"
architecture=$(dpkg --print-architecture)
cat >"$root/deb/DEBIAN/control" <<CONTROL
Package: firelane
Version: $version
Architecture: $architecture
Maintainer: The Firelane authors <firelane@localhost>
Section: devel
Priority: optional
Description: says where the time of a PyTorch program went
 Opens traces of Firelane, torch.profiler and other tools, diagnoses, compares and shows them.
 Recording needs the Python package of the same name.
CONTROL
dpkg-deb --root-owner-group --build "$root/deb" "dist/firelane_${version}_$architecture.deb" >/dev/null
ls -l "dist/$name.tar.gz" "dist/firelane_${version}_$architecture.deb"
