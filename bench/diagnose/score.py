"""The scoreboard of `firelane diagnose`: true steps, planted faults found, gains predicted.

    python bench/diagnose/score.py FIRELANE FOLDER    # FOLDER: what record_truth.py or record_faults.py wrote

Prints Markdown tables. A fault counts as found first if the first finding has its id; a fixed program raises a false
alarm if any finding names the fault that it no longer has. "Off" compares what is likely with the truth.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Diagnose = Callable[[str], dict]


def ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"


def summary(errors: list[float], goal: float) -> str:
    rms = math.sqrt(statistics.fmean(error * error for error in errors))
    return (
        f"{sum(abs(error) <= goal for error in errors)} of {len(errors)} within {goal:.0%}; "
        f"root mean square {rms:.1%}, the worst {max(errors, key=abs):+.0%}"
    )


def truth_table(traces: dict, diagnose: Diagnose) -> None:
    print("| trace | true step ms | recorded | undone | range | off |\n|---|---:|---:|---:|---|---:|")
    errors = []
    for name, truth in traces.items():
        step = diagnose(f"{name}.json.gz")["step"]
        true_ns = (truth["before_ns"] + truth["after_ns"]) / 2
        errors.append(step["step_ns"] / true_ns - 1)
        print(
            f"| {name} | {ms(true_ns)} | {ms(step['recorded_ns'])} | {ms(step['step_ns'])} "
            f"| {ms(step['low_ns'])} to {ms(step['high_ns'])} | {errors[-1]:+.0%} |"
        )
    print(f"\n{summary(errors, 0.15)}\n")


def undone_table(truth: dict, diagnose: Diagnose) -> None:
    """All recorded programs; those with planted faults also without steps that were timed unrecorded."""
    goal = 0.05 if truth["ending"] == "lane" else 0.15
    print(
        "| program | true step ms | recorded | undone | off | without timed steps | off |\n"
        "|---|--:|--:|--:|--:|--:|--:|"
    )
    errors: list[float] = []
    untimed_errors: list[float] = []
    rows = [(name, kind, entry) for name, entry in truth["faults"].items() for kind in ("faulty", "fixed")]
    rows += [(name, "healthy", entry) for name, entry in truth["healthy"].items()]
    for name, kind, entry in rows:
        # A step that is slow now and then raises the average, which is what blocks of steps measure.
        slow = kind == "faulty" and entry["finding"] == "slow-steps"
        key = "step_ns" if slow else "usual_ns"
        true_ns = statistics.median(entry[kind + "_ns"])
        step = diagnose(f"{name}.{kind}.{truth['ending']}")["step"]
        errors.append(step[key] / true_ns - 1)
        recorded_ns = step["recorded_ns" if key == "step_ns" else "usual_recorded_ns"]
        row = [f"{name}, {kind}", ms(true_ns), ms(recorded_ns), ms(step[key]), f"{errors[-1]:+.0%}", "", ""]
        if kind == "faulty" and not slow and entry["saves_time"] and truth["ending"] == "lane":
            untimed = diagnose(f"{name}.untimed.lane")["step"][key]
            untimed_errors.append(untimed / true_ns - 1)
            row[5:] = [ms(untimed), f"{untimed_errors[-1]:+.0%}"]
        print("| " + " | ".join(row) + " |")
    print(f"\n{summary(errors, goal)}")
    if untimed_errors:
        print(f"Without timed steps: {summary(untimed_errors, goal)}")
    print()


def faults_table(truth: dict, diagnose: Diagnose) -> None:
    print(
        "| planted fault | found | step ms | predicted gain ms | measured | off | when fixed |\n"
        "|---|---|--:|---|--:|--:|---|"
    )
    first = found = alarms = 0
    errors: list[float] = []
    within = 0
    for name, entry in truth["faults"].items():
        findings = diagnose(f"{name}.faulty.{truth['ending']}")["findings"]
        ids = [finding["id"] for finding in findings]
        fixed = [finding["id"] for finding in diagnose(f"{name}.fixed.{truth['ending']}")["findings"]]
        place = ids.index(entry["finding"]) + 1 if entry["finding"] in ids else 0
        first, found, alarms = first + (place == 1), found + (place > 0), alarms + (entry["finding"] in fixed)
        faulty_ns, fixed_ns = (statistics.median(entry[kind + "_ns"]) for kind in ("faulty", "fixed"))
        where = (
            "first"
            if place == 1
            else f"place {place}, after {', '.join(ids[: place - 1])}"
            if place
            else f"no: {', '.join(ids)}"
        )
        row = [name, where, ms(faulty_ns), "not about time", "", ""]
        if entry["saves_time"]:
            real = faulty_ns - fixed_ns
            gain = findings[place - 1]["gain"] if place else {"low_ns": 0, "high_ns": 0}
            errors.append(gain.get("likely_ns", (gain["low_ns"] + gain["high_ns"]) / 2) / real - 1)
            within += 0.9 * gain["low_ns"] <= real <= 1.1 * gain["high_ns"]
            row[3:] = [f"{ms(gain['low_ns'])} to {ms(gain['high_ns'])}", ms(real), f"{errors[-1]:+.0%}"]
        rest = [each for each in fixed if each != entry["finding"]]
        row.append(
            ("still found" if entry["finding"] in fixed else "absent") + (f"; {', '.join(rest)}" if rest else "")
        )
        print("| " + " | ".join(row) + " |")
    print(f"\n{first} of {len(truth['faults'])} found first, {found} found, {alarms} still found when fixed.")
    print(
        f"Gains: {summary(errors, 0.2)}; {within} of {len(errors)} measured gains are in the range or at most "
        "10% outside it.\n"
    )


def healthy_table(truth: dict, diagnose: Diagnose) -> None:
    print("| healthy program | step ms | verdict | findings |\n|---|--:|---|---|")
    for name, entry in truth["healthy"].items():
        answer = diagnose(f"{name}.healthy.{truth['ending']}")
        ids = ", ".join(finding["id"] for finding in answer["findings"])
        step_ms, verdict = ms(statistics.median(entry["healthy_ns"])), answer["label"]
        print(f"| {name} | {step_ms} | {verdict} | {ids or 'nothing worth fixing'} |")


def main() -> None:
    firelane, folder = sys.argv[1], Path(sys.argv[2])

    def diagnose(name: str) -> dict:
        return json.loads(
            subprocess.run([firelane, "diagnose", folder / name, "--json"], check=True, capture_output=True).stdout
        )

    if (folder / "truth.json").exists():
        truth_table(json.loads((folder / "truth.json").read_text())["traces"], diagnose)
    if (folder / "faults.json").exists():
        truth = json.loads((folder / "faults.json").read_text())
        for kind in ("faults", "healthy"):
            for name in [name for name, entry in truth[kind].items() if "failed" in entry]:
                print(f"{name} failed: {truth[kind].pop(name)['failed']}")
        undone_table(truth, diagnose)
        faults_table(truth, diagnose)
        healthy_table(truth, diagnose)


if __name__ == "__main__":
    main()
