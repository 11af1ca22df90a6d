#!/usr/bin/env bash
# make demo: opens a real trace of three training steps and shows what one gets.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/release:$PATH"
trace=tests/data/gpt_full.json.gz

show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

show firelane info "$trace"
show firelane ops "$trace" --sort-by self_cpu_time_total --rows 10
cat <<TXT

That was a trace of torch.profiler; yours opens the same way. What to type next:

  build/release/firelane kernels $trace        which kernels the GPU spent its time on
  build/release/firelane steps $trace          step by step
  build/release/firelane --help                                            every verb
TXT
