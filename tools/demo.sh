#!/usr/bin/env bash
# make demo: records a live training loop on the CPU, without a change to it, and shows what one gets.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/release:$PWD/.venv/bin:$PATH"
mkdir -p build/demo
trace=build/demo/run.lane

show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

show firelane record --force --modules -o "$trace" -- python examples/train.py
show firelane export "$trace" --to chrome -o build/demo/run.json.gz --force
ls -l build/demo
cat <<TXT

That was examples/train.py; yours is recorded the same way, and traces of torch.profiler open, too. What to type next:

  build/release/firelane info $trace                            what it can answer
  build/release/firelane ops $trace --group-by-input-shape            time per operator and shape
  build/release/firelane kernels tests/data/gpt_full.json.gz                a real trace from a GPU
  build/release/firelane --help                                             every verb
TXT
