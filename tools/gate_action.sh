#!/usr/bin/env bash
# What action.yml runs: firelane gate with its inputs from the environment (TRACES, BASELINE, STORE, LABEL, LIMITS,
# INCONCLUSIVE), the answer in the job's log and step summary, and the status as an output.
set -uo pipefail

arguments=(--store "$STORE" --label "$LABEL" --markdown --junit "${RUNNER_TEMP:-.}/firelane-gate.xml")
for limit in $LIMITS; do arguments+=(--limit "$limit"); done
# Patterns and lists are split here on purpose.
# shellcheck disable=SC2206
[ -z "$BASELINE" ] || arguments+=(--baseline $BASELINE)
# shellcheck disable=SC2086
answer=$(firelane gate "${arguments[@]}" -- $TRACES)
code=$?
printf '%s\n' "$answer"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || printf '## Firelane gate\n\n%s\n' "$answer" | head -c 1000000 >>"$GITHUB_STEP_SUMMARY"

case $code in
  0) status=holds ;;
  3) status=broken ;;
  4) status=inconclusive ;;
  *) status=failed ;;
esac
[ -z "${GITHUB_OUTPUT:-}" ] || echo "status=$status" >>"$GITHUB_OUTPUT"
[ "$code" != 4 ] || [ "$INCONCLUSIVE" = fail ] || exit 0
exit "$code"
