#!/usr/bin/env bash
# Runs every libFuzzer target for SECONDS each at most, as many at once as there are cores: tools/fuzz.sh SECONDS [flags]
# Of the build FUZZ_BUILD (build/dev). The seeds of fuzz/corpus are always tried first; what is found is kept in FUZZ_CORPUS
# (build/fuzz/corpus), crashes in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
# Fresh memory is filled, so that reading it before writing it shows, in libraries as well.
export ASAN_OPTIONS=max_malloc_fill_size=200000:malloc_fill_byte=255${ASAN_OPTIONS:+:$ASAN_OPTIONS}

run_target() {
  local target=$1 seconds=$2
  shift 2
  local name corpus log began=$SECONDS
  name=$(basename "$target")
  corpus=${FUZZ_CORPUS:-build/fuzz/corpus}/$name
  log=build/fuzz/$name.log
  mkdir -p "$corpus"
  if "$target" "$corpus" fuzz/corpus -dict=fuzz/trace.dict -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=3000 -max_len=20000 -artifact_prefix="build/fuzz/$name-" -print_final_stats=1 "$@" >"$log" 2>&1; then
    echo "fuzz: $name: $((SECONDS - began)) s, $(awk '/number_of_executed_units/{print $2}' "$log") inputs, no crash"
  else
    tail -n 40 "$log"
    echo "fuzz: $name found a crash; the input is in build/fuzz, the whole log is $log"
    return 1
  fi
}
export -f run_target

printf '%s\0' "${FUZZ_BUILD:-build/dev}"/fuzz/fuzz_* |
  xargs -0 -P "$(nproc)" -I{} bash -c 'run_target "$@"' run_target {} "$seconds" "$@"
