#!/usr/bin/env bash
# How many unit tests the last `ctest -R '^units'` of a build folder ran, and why others were skipped: to ctest all tests of a
# room are one.
#   tools/count_units.sh build/dev
set -euo pipefail
awk '
  skipped_next { reasons[$0]++; skipped_next = 0 }
  /: Skipped$/ { skipped_next = 1 }
  /^\[  PASSED  \] [0-9]+ tests?\./ { passed += $4 }
  /^\[  SKIPPED \] [0-9]+ tests?/ { skipped += $4 }
  END {
    printf "units: %d tests passed, %d skipped\n", passed, skipped
    for (reason in reasons) printf "  skipped %d: %s\n", reasons[reason], reason
  }' "$1/Testing/Temporary/LastTest.log"
