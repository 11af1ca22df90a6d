#!/usr/bin/env bash
# Fuzzes the reader of each format alone, one after another on one core: tools/fuzz_readers.sh SECONDS [READER...]
# READER is a format's name in import/readers.cc. Inputs that another reader would take are passed over, so that all of the
# time is spent on the one. Before it: cmake --preset deep && cmake --build --preset deep --target fuzz_targets
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
export ASAN_OPTIONS=max_malloc_fill_size=200000:malloc_fill_byte=255${ASAN_OPTIONS:+:$ASAN_OPTIONS}

readers=(
  "XPlane:fuzz_protobuf" "Perfetto:fuzz_protobuf" "Chakra execution trace:fuzz_protobuf"
  "SQLite:fuzz_sqlite" "pickle:fuzz_pickle" "Firelane:fuzz_lane"
  "NCCL flight recorder:fuzz_json" "execution trace:fuzz_json" "rocprofv3 JSON:fuzz_json" "rocprofv3 CSV:fuzz_json"
  "speedscope:fuzz_json" "collapsed stacks:fuzz_json" "JSON:fuzz_json"
)
mkdir -p build/fuzz
for each in "${readers[@]}"; do
  reader=${each%:*} target=${each##*:}
  wanted=$(($# == 0))
  for one in "$@"; do [[ $one == "$reader" ]] && wanted=1; done
  ((wanted)) || continue
  name=reader-${reader// /_}
  corpus=build/fuzz/corpus/$name
  log=build/fuzz/$name.log
  mkdir -p "$corpus"
  if FIRELANE_FUZZ_READER=$reader "build/deep/fuzz/$target" "$corpus" fuzz/corpus -dict=fuzz/trace.dict \
    -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=20000 -artifact_prefix="build/fuzz/$name-" \
    -print_final_stats=1 >"$log" 2>&1; then
    echo "fuzz: $reader: $seconds s, $(awk '/number_of_executed_units/{print $2}' "$log") inputs, no crash"
  else
    tail -n 40 "$log"
    echo "fuzz: $reader: a crash; the input is in build/fuzz, the whole log is $log"
    failed=1
  fi
done
exit "${failed:-0}"
