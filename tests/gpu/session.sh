#!/usr/bin/env bash
# What a machine with a GPU is needed for, in one go, each part with a time limit so that one hang does not cost the rest:
#
#   tests/gpu/session.sh OUT [build|pairs|tests|variants|stress|lanes|bench ...]      (all, when none is named)
#
# Builds the recorder alone (preset `device`). Where the reader is built, too, `tests` compares the pairs at once; else
# test_gpu_parity.py does it afterwards: unpack OUT/pairs.tgz and set FIRELANE_GPU_PAIRS. OUT/log.txt has everything, and
# OUT/summary.txt one line a part. Exit code 1: a part failed. CARRY is a folder with what such a machine may lack: nanobind/,
# include/zstd.h.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
shift
mkdir -p "$out"
parts=${*:-build pairs tests variants stress lanes bench}
carry=$(realpath -m "${CARRY:-build/carry}")
log=$out/log.txt
summary=$out/summary.txt
: >"$log" >"$summary"
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 PYTHONPATH=$carry${PYTHONPATH:+:$PYTHONPATH}

run() {  # run NAME SECONDS COMMAND...
  local name=$1 limit=$2 begin=$SECONDS
  shift 2
  timeout -k 5 "$limit" "$@" >>"$log" 2>&1
  local code=$?
  [ $code -eq 0 ] || failed=1
  echo "session: $name: exit $code after $((SECONDS - begin)) s" | tee -a "$log" "$summary"
}

build() {
  local zstd=()
  [ -e "$carry/include/zstd.h" ] && zstd=(-DFIRELANE_ZSTD_INCLUDE="$carry/include")
  cmake --preset device -DFIRELANE_PYTHON=ON -DPython_EXECUTABLE="$(command -v python3)" "${zstd[@]}" &&
    cmake --build --preset device -j "$(nproc)" --target _record_torch_"$(python3 -c \
      'import torch; print("_".join(torch.__version__.split(".")[:2]))')"
}
export -f build
export carry

for part in $parts; do
  case $part in
    build) run build 150 bash -c build ;;
    stress)
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
    tests)
      if ! PYTHONPATH=python:$PYTHONPATH python3 -c 'import firelane, pytest' 2>>"$log"; then
        echo "session: tests: left out, for the reader or pytest is not here; see OUT/pairs.tgz" | tee -a "$log" "$summary"
      elif [ -d "$work/pairs" ]; then
        FIRELANE_GPU_PAIRS=$work/pairs run tests 200 python3 -m pytest -q -rs --junitxml="$out/tests.xml" tests/gpu
      else
        run tests 300 python3 -m pytest -q -rs --junitxml="$out/tests.xml" tests/gpu
      fi
      ;;
    lanes)
      run lanes 60 python3 -X faulthandler tests/data/make_h200_lanes.py "$work/lanes"
      [ ! -d "$work/lanes" ] || tar -C "$work" -czf "$out/lanes.tgz" lanes
      ;;
    bench) run bench 100 python3 -X faulthandler bench/gpu.py --rounds "${BENCH_ROUNDS:-9}" --json "$out/bench.json" ;;
    *) echo "session: no part is named $part" >&2; exit 2 ;;
  esac
done
tail -c 9000 "$log"
exit $failed
