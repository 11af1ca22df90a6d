#!/usr/bin/env bash
# Builds here what a GPU machine without packages, compiler libraries or network needs to run all of firelane:
#
#   tests/gpu/carry.sh [PYTHON]      PYTHON: an interpreter of that machine's minor version (else python3)
#
# Into build/carry: the binary, firelane's compiled modules for that Python and .venv's torch, the libraries they are linked
# with, pytest, and what a rebuild of the recorder there wants. tests/gpu/session.sh takes it from there (CARRY).
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(realpath -s "$(command -v "${1:-python3}")")
carry=$PWD/build/carry
build=$PWD/build/carry-build
tools=$build/python
mkdir -p "$build"

# nanobind for that Python; and .venv's torch, whose headers and libraries are the same for every Python.
[ -x "$tools/bin/python" ] || "$python" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "$(grep ^nanobind== tools/requirements.txt)"
torch=$(.venv/bin/python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
stand_in=$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch
mkdir -p "$stand_in"
ln -sfn "$torch/include" "$stand_in/include"
ln -sfn "$torch/lib" "$stand_in/lib"
.venv/bin/python -c 'import torch; print(f"""__version__ = {torch.__version__!r}
def compiled_with_cxx11_abi():
    return {torch.compiled_with_cxx11_abi()}""")' >"$stand_in/__init__.py"

# DT_RPATH and not RUNPATH: libraries look there for their own libraries, too.
flags='-Wl,-s,--disable-new-dtags,-rpath,\$ORIGIN/lib,-rpath,\$ORIGIN/../lib,-rpath,\$ORIGIN/../modules/lib'
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="${CXX:-clang++-19}" -DFIRELANE_TESTS=OFF \
  -DFIRELANE_PYTHON=ON -DPython_EXECUTABLE="$tools/bin/python" \
  -DCMAKE_EXE_LINKER_FLAGS="$flags" -DCMAKE_MODULE_LINKER_FLAGS="$flags" >"$build/cmake.log"
cmake --build "$build" -j "$(nproc)" --target firelane _trace _recorder firelane_recorder >"$build/build.log" || {
  tail -n 30 "$build/build.log" >&2
  exit 1
}

rm -rf "$carry"
mkdir -p "$carry/bin" "$carry/modules/lib" "$carry/include"
cp /usr/include/zstd.h "$carry/include"
cp "$build/firelane" "$carry/bin"
suffix=$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mv "python/firelane/_trace$suffix" "python/firelane/_recorder$suffix" "$carry/modules"
cp -r python/firelane/recorders "$carry/modules"
# All that is linked in, but for the C and C++ libraries and OpenSSL, which every machine with Python has, newer than here.
ldd "$carry"/bin/firelane "$carry"/modules/*.so "$carry"/modules/recorders/*.so | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -Ev '/lib(c|m|stdc\+\+|gcc_s|pthread|dl|rt|ssl|crypto|torch.*|c10.*)\.so' | xargs cp -Lt "$carry/modules/lib"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check --target "$carry/site" \
  "$(grep ^pytest== tools/requirements.txt)" "$(grep ^nanobind== tools/requirements.txt)"
rm -rf "$carry/site/bin"
find "$carry" -name __pycache__ -prune -exec rm -rf {} +
du -sh "$carry"
