#!/usr/bin/env bash
# make test-gpu: runs tests/gpu where there is an NVIDIA GPU, else says why not. Does not run setup: a GPU machine
# may have no package index, and the tests there use the Python that has torch.
#
#   OUT=results make test-gpu      everything that wants a GPU: recorder built, pairs, tests, stress, benchmarks, recordings for
#                                  tests/data; results and logs in the folder (tests/gpu/session.sh)
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "test-gpu: skipped: $1"
  exit 0
}
[ -d tests/gpu ] || skip "there are no tests in tests/gpu yet"
command -v nvidia-smi >/dev/null || skip "no NVIDIA driver here (nvidia-smi is not installed)"
nvidia-smi -L >/dev/null 2>&1 || skip "nvidia-smi finds no GPU: $(nvidia-smi -L 2>&1 | head -n 1)"
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
"$python" -c 'import torch' 2>/dev/null || skip "$python has no torch"
if [ -n "${OUT:-}" ]; then
  PATH="$(cd "$(dirname "$(command -v "$python")")" && pwd):$PATH" exec tests/gpu/session.sh "$OUT"
fi
exec "$python" -m pytest -q -rs tests/gpu
