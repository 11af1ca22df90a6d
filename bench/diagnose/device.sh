#!/usr/bin/env bash
# Records the library on a machine with a GPU whose files come back in few parts of limited size:
#
#   bench/diagnose/device.sh OUT [argument of record_all.py ...]
#   bench/diagnose/device.sh OUT unseen       # a set (unseen, sealed, asked, merged, common), on the GPU and before it on the CPU
#
# Firelane's recorder comes from build/carry (tests/gpu/carry.sh). Ends with OUT/traces.tar.* of at most 8 MB each:
# cat OUT/traces.tar.* | tar -x. What can be missed best comes last in it.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
shift
chosen=()
case "${1:-}" in
  unseen | sealed | asked | merged | common)
    chosen=("--$1")
    SECONDS_ON_CPU=${SECONDS_ON_CPU:-60}
    shift
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r build/carry/modules/. python/firelane/
export PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
quiet() { grep -v 'CPUAllocator\|DeviceProperties'; }
if [ -n "${SECONDS_ON_CPU:-}" ]; then
  python3 bench/diagnose/record_all.py "$work/cpu" --device cpu --jobs 7 --seconds "$SECONDS_ON_CPU" "${chosen[@]}" 2>&1 | quiet
fi
python3 bench/diagnose/record_all.py "$work/cuda" "${chosen[@]}" "$@" 2>&1 | quiet
mkdir -p "$out"
cd "$work"
{
  find . -name true_steps.json -o -name '*.lane' -o -name '*.txt'
  for options in memory plain stacks; do find . -name "*.$options.json.xz"; done
} >list
tar -cf - -T list | split -b 8000000 - "$out/traces.tar."
ls -la "$out"
