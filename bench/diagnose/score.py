"""The scoreboard of `firelane diagnose`: recording undone against the truth, planted faults found, gains predicted.

    python bench/diagnose/score.py FIRELANE FOLDER    # FOLDER: what record_truth.py and record_faults.py wrote

Prints Markdown tables. A fault counts as found first when the first finding has its id; a fixed program raises a false
alarm when any finding with an expected gain names the fault that it does not have.
"""

import json
import math
import subprocess
import sys
from pathlib import Path


def diagnose(firelane, path):
    return json.loads(subprocess.run([firelane, "diagnose", path, "--json"], check=True, capture_output=True).stdout)


def undone_table(firelane, folder):
    traces = json.loads((folder / "truth.json").read_text())["traces"]
    print("| trace | true step ms | recorded | undone | range | off |\n|---|---:|---:|---:|---|---:|")
    errors = []
    for name, truth in traces.items():
        step = diagnose(firelane, folder / f"{name}.json.gz")["step"]
        true_ns = (truth["before_ns"] + truth["after_ns"]) / 2
        error = step["step_ns"] / true_ns - 1
        errors.append(error)
        print(f"| {name} | {true_ns / 1e6:.2f} | {step['recorded_ns'] / 1e6:.2f} | {step['step_ns'] / 1e6:.2f} "
              f"| {step['low_ns'] / 1e6:.2f} to {step['high_ns'] / 1e6:.2f} | {error:+.0%} |")
    rms = math.sqrt(sum(error * error for error in errors) / len(errors))
    within = sum(abs(error) <= 0.15 for error in errors)
    print(f"\n{within} of {len(errors)} within 15%; root mean square {rms:.1%}\n")


def faults_table(firelane, folder):
    faults = json.loads((folder / "faults.json").read_text())["faults"]
    print("| program | true step ms | recorded | undone | off |\n|---|---:|---:|---:|---:|")
    for fault, truth in faults.items():
        for kind in ("faulty", "fixed"):
            step = diagnose(firelane, folder / f"{fault}.{kind}.json.gz")["step"]
            true_ns = truth[kind + "_ns"]
            print(f"| {fault}, {kind} | {true_ns / 1e6:.2f} | {step['recorded_ns'] / 1e6:.2f} | {step['step_ns'] / 1e6:.2f} "
                  f"| {step['step_ns'] / true_ns - 1:+.0%} |")
    print("\n| fault | found | predicted gain ms | real gain ms | false alarm when fixed |\n|---|---|---|---:|---|")
    first = found = alarms = 0
    for fault, truth in faults.items():
        ids = [finding["id"] for finding in diagnose(firelane, folder / f"{fault}.faulty.json.gz")["findings"]]
        findings = {finding["id"]: finding for finding in diagnose(firelane, folder / f"{fault}.faulty.json.gz")["findings"]}
        fixed = [finding["id"] for finding in diagnose(firelane, folder / f"{fault}.fixed.json.gz")["findings"]]
        place = ids.index(fault) + 1 if fault in ids else 0
        first += place == 1
        found += place > 0
        alarms += fault in fixed
        gain = findings[fault]["gain"] if place else {"low_ns": 0, "high_ns": 0}
        real = (truth["faulty_ns"] - truth["fixed_ns"]) / 1e6
        print(f"| {fault} | {'first' if place == 1 else f'place {place}' if place else 'no: ' + ', '.join(ids)} "
              f"| {gain['low_ns'] / 1e6:.2f} to {gain['high_ns'] / 1e6:.2f} | {real:.2f} "
              f"| {'yes' if fault in fixed else 'no'} |")
    print(f"\n{first} of {len(faults)} found first, {found} found, {alarms} false alarms\n")


def main():
    firelane, folder = sys.argv[1], Path(sys.argv[2])
    if (folder / "truth.json").exists():
        undone_table(firelane, folder)
    if (folder / "faults.json").exists():
        faults_table(firelane, folder)


if __name__ == "__main__":
    main()
