#!/usr/bin/env python3
"""Attaches to a running training again and again: does the program compute what it would have, and what is left of us?

    bench/attach.py [--attaches 100] [--python .venv/bin/python ...] [--write]

A small training on the CPU (dropout, shuffled batches, AdamW, a scheduler) runs while `firelane attach` records one
step after the other of it. Then a second process makes as many steps alone. Losses of all steps and the final weights
have to be equal bit by bit, and threads, open files and hooks of the first process those that it had at its start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parents[1]

TESTS = ROOT / "tests" / "python"


def start(python: str, folder: Path, steps: int) -> subprocess.Popen[str]:
    command = [python, str(TESTS / "attached_training.py"), str(steps)]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def attach_to(python: str, firelane: str, attaches: int) -> tuple[str, bool]:
    """A row of the table, and whether all went well."""
    with tempfile.TemporaryDirectory(prefix="firelane-attach-bench-") as name:
        folder = Path(name)
        program = start(python, folder, 0)
        seconds, failures = [], []
        for number in range(attaches):
            begin = time.monotonic()
            flags = ["--steps", "1", "--quiet", "-o", f"{number}.lane"]
            done = subprocess.run(
                [firelane, "attach", str(program.pid), *flags], cwd=folder, capture_output=True, text=True, check=False
            )
            seconds.append(time.monotonic() - begin)
            if done.returncode != 0 or not (folder / f"{number}.lane").exists():
                failures.append(done.stderr)
            print(f"{number + 1} of {attaches}: {seconds[-1]:.2f} s", file=sys.stderr)
        (folder / "stop").touch()
        attached = json.loads(program.communicate()[0])
        others = sorted(p.name for p in folder.iterdir() if p.suffix != ".lane")
        alone = json.loads(start(python, folder, attached["computed"]["steps"]).communicate()[0])
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    equal, left = attached["computed"] == alone["computed"], attached["left"]
    print(*failures[:3], f"other files: {others}", f"left, before and after: {left}", sep="\n")
    row = (
        f"| {version} | {attaches} | {attaches - len(failures)} | {statistics.median(seconds):.2f} s | "
        f"{attached['computed']['steps']:,} | {'yes' if equal else 'NO'} | {', '.join(left) or 'nothing'} |\n"
    )
    return row, equal and not left and not failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attaches", type=int, default=100)
    parser.add_argument("--python", nargs="+", default=[str(ROOT / ".venv" / "bin" / "python")])
    parser.add_argument("--write", action="store_true", help="update bench/README.md")
    args = parser.parse_args()
    firelane = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
    results = [attach_to(python, firelane, args.attaches) for python in args.python]
    text = (
        "| Python | attaches | traces with the step | time of one | steps of the program | losses and weights equal | "
        "left in it |\n|---|--:|--:|--:|--:|---|---|\n" + "".join(row for row, _ in results)
    )
    print(text)
    if args.write:
        readme.write("attach.py", text)
    return 0 if all(went_well for _, went_well in results) else 1


if __name__ == "__main__":
    sys.exit(main())
