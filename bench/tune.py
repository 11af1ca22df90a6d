#!/usr/bin/env python3
"""Whether `firelane tune` finds what a full grid finds, in a third of its trials.

    .venv/bin/python bench/tune.py [--write]

Two programs with a slow loader (bench/slow_loader.py), one whose samples all take as long and one whose samples do not.
The grid is every number of workers with every prefetch factor, by `firelane sweep`; both time the same number of steps
in fresh processes. What is compared is the step of tune's winner, as its confirming runs measured it, with the shortest
of the grid; in the last run of both, the machine is the same and nothing else is changed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parents[1]
FIRELANE = ROOT / "build" / "release" / "firelane"
PROGRAM = ROOT / "bench" / "slow_loader.py"
WORKERS = range(7)
PREFETCH = (2, 4, 8)


def firelane(*words: str) -> str:
    return subprocess.run([FIRELANE, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(name: str, flags: list[str], steps: int) -> list[str]:
    program = [sys.executable, str(PROGRAM), "--steps", str(steps + 40), *flags]
    tuned = json.loads(
        firelane(
            "tune", "--json", "--steps", str(steps), "--runs", "4", "--max-workers", str(max(WORKERS)), "--", *program
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        grid = []
        common = ["sweep", "--json", "--steps", str(steps), "--folder", folder]
        for workers in WORKERS:
            ahead = PREFETCH if workers else PREFETCH[:1]  # without workers nothing is loaded ahead
            variables = ["--var", f"workers=env:WORKERS:{workers}"]
            variables += ["--var", "prefetch=env:PREFETCH:" + ",".join(map(str, ahead))]
            grid += json.loads(firelane(*common, *variables, "--", *program))["points"]
    best = min(grid, key=lambda point: point["step_ns"])
    before, after = (statistics.median(tuned[key]) / 1e6 for key in ("before_ns", "after_ns"))
    reached = best["step_ns"] / 1e6 / after
    settings = [trial["settings"] for trial in tuned["trials"] if trial["kept"]][-1]
    return [
        name,
        f"{before:.1f} ms",
        f"{best['step_ns'] / 1e6:.1f} ms (workers {best['workers']}, prefetch {best['prefetch']})",
        str(len(grid)),
        f"{after:.1f} ms ({', '.join(f'{key} {value}' for key, value in settings.items())})",
        str(len(tuned["trials"])),
        f"{100 * reached:.0f}%",
        f"{100 * len(tuned['trials']) / len(grid):.0f}%",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30, help="of each trial and each point")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    args = parser.parse_args()
    head = [
        "loader",
        "as it is",
        "best of the grid",
        "points",
        "found by tune",
        "trials",
        "of the best",
        "of the points",
    ]
    rows = [
        measure("8 ms a sample", [], args.steps),
        measure("4 or 20 ms a sample", ["--uneven"], args.steps),
        measure("1 ms a sample", ["--load-ms", "1"], args.steps),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    text = "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
    print(text)
    if args.write:
        readme.write("tune.py", text)


if __name__ == "__main__":
    main()
