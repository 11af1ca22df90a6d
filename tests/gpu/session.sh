#!/usr/bin/env bash
# What a machine with a GPU is needed for, in one go, each part with a time limit so that one hang does not cost the rest:
#
#   tests/gpu/session.sh OUT [build|pairs|front|tests|variants|stress|lanes|bench|faults ...]      (all, when none is named)
#
# Builds the recorder alone (preset `device`). CARRY (build/carry) is a folder with what such a machine may lack: carry.sh
# makes one elsewhere, with the reader and the command in it. `tests` compares what `pairs` and `front` recorded; where the
# reader is missing it is done afterwards: unpack OUT/pairs.tgz and set FIRELANE_GPU_PAIRS (OUT/front.tgz, FIRELANE_GPU_FRONT).
# OUT/log.txt has everything, and OUT/summary.txt one line a part. Exit code 1: a part failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
shift
mkdir -p "$out"
parts=${*:-build pairs front tests variants stress lanes bench faults}
carry=$(realpath -m "${CARRY:-build/carry}")
log=$out/log.txt
summary=$out/summary.txt
: >"$log" >"$summary"
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 PYTHONPATH=$carry:$carry/site${PYTHONPATH:+:$PYTHONPATH}
[ ! -d "$carry/modules" ] || cp -r "$carry/modules/." python/firelane/
[ ! -x "$carry/bin/firelane" ] || export FIRELANE_BINARY=$carry/bin/firelane

run() {  # run NAME SECONDS COMMAND...
  local name=$1 limit=$2 begin=$SECONDS
  shift 2
  timeout -k 5 "$limit" "$@" >>"$log" 2>&1
  local code=$?
  [ $code -eq 0 ] || failed=1
  echo "session: $name: exit $code after $((SECONDS - begin)) s" | tee -a "$log" "$summary"
  return $code
}

build() {
  local zstd=()
  [ -e "$carry/include/zstd.h" ] && zstd=(-DFIRELANE_ZSTD_INCLUDE="$carry/include")
  cmake --preset device -DFIRELANE_PYTHON=ON -DPython_EXECUTABLE="$(command -v python3)" "${zstd[@]}" &&
    cmake --build --preset device -j "$(nproc)" --target _recorder firelane_recorder
}
export -f build
export carry CARRY=$carry

for part in $parts; do
  case $part in
    build) run build 150 bash -c build ;;
    stress)
      run "graph capture" 40 python3 -X faulthandler tests/gpu/capture.py
      run "stress, CUPTI stays" 30 python3 -X faulthandler tests/gpu/stress.py 6 --keep
      run stress 50 python3 -X faulthandler tests/gpu/stress.py "${STRESS_SECONDS:-15}"
      ;;
    variants)
      run variants 100 python3 -X faulthandler bench/gpu_variants.py --seconds "${VARIANT_SECONDS:-45}" \
        --rounds "${VARIANT_ROUNDS:-12}" ${VARIANTS:+--only "$VARIANTS"} --json "$out/variants.json"
      ;;
    pairs)
      run pairs 90 python3 -X faulthandler tests/gpu/record_both.py "$work/pairs"
      [ ! -d "$work/pairs" ] || tar -C "$work" -czf "$out/pairs.tgz" pairs
      ;;
    front)
      mkdir -p "$work/front"
      for group in front collectives nested; do
        run "$group" "$([ $group = front ] && echo 180 || echo 60)" python3 -X faulthandler tests/gpu/profile_both.py "$work/front" $group
        tail -n 60 "$log" >"$work/front/$group.log"
      done
      tar -C "$work" -czf "$out/front.tgz" front
      ;;
    tests)
      if ! PYTHONPATH=python:$PYTHONPATH python3 -c 'import firelane, pytest' 2>>"$log"; then
        echo "session: tests: skipped: the reader or pytest is missing; see OUT/pairs.tgz" | tee -a "$log" "$summary"
      else
        [ ! -d "$work/pairs" ] || export FIRELANE_GPU_PAIRS=$work/pairs
        [ ! -d "$work/front" ] || export FIRELANE_GPU_FRONT=$work/front
        run tests 240 python3 -m pytest -q -rs --tb=short --basetemp="$work/tests" --junitxml="$out/tests.xml" tests/gpu
        if [ -d "$work/front" ]; then
          find "$work/tests" -path '*/record*/run.lane' -exec cp {} "$work/front" \;
          tar -C "$work" -czf "$out/front.tgz" front
        fi
      fi
      ;;
    lanes)
      run lanes 60 python3 -X faulthandler tests/data/make_h200_lanes.py "$work/lanes"
      [ ! -d "$work/lanes" ] || tar -C "$work" -czf "$out/lanes.tgz" lanes
      ;;
    bench) run bench 160 python3 -X faulthandler bench/gpu.py --seconds "${BENCH_SECONDS:-100}" --json "$out/bench.json" ;;
    faults)  # a second and third process goes on after the program that ended the one before
      until=$((SECONDS + ${FAULT_SECONDS:-110}))
      for attempt in 1 2 3; do
        left=$((until - SECONDS))
        [ $left -gt 10 ] || break
        run "faults, process $attempt" $((left + 30)) \
          python3 -X faulthandler bench/diagnose/record_faults.py "$work/faults" --seconds $left ${FAULTS:-} && break
      done
      [ ! -d "$work/faults" ] || tar -C "$work" -czf "$out/faults.tgz" faults
      ;;
    *) echo "session: no part is named $part" >&2; exit 2 ;;
  esac
done
tail -c 9000 "$log"
exit $failed
