#!/usr/bin/env python3
"""How fast `firelane compare` is: two traces of 73 MB, and two of 1 GB made from them.

    .venv/bin/python bench/compare.py [TRACE] [--large MB] [--repeat 5] [--beside OTHER_FIRELANE] [--write]

Each figure is from fresh processes, best of --repeat: from typing the command to its last line, both files in the page
cache. Peak memory is the process's ru_maxrss, which counts the mapped pages of the input. With --beside, another build
takes turns with this one, so that the ratio can be trusted also where other work keeps the cores busy.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import time
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parents[1]
BINARY = ROOT / "build" / "release"
WORK = ROOT / "build" / "bench"
SHARED = ROOT.parent / "shared" / "traces" / "llm_generate.json.gz"


class Measured:
    """The best of all runs: seconds, of them on the CPU (both cores), and MiB at the peak."""

    def __init__(self) -> None:
        self.seconds, self.cpu, self.peak = float("inf"), float("inf"), 0.0

    def run(self, binary: Path, first: Path, second: Path) -> None:
        start = time.perf_counter()
        with subprocess.Popen([binary, "compare", first, second], stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = min(self.seconds, time.perf_counter() - start)
        if process.returncode:
            raise SystemExit(f"compare failed with {process.returncode}")
        self.cpu = min(self.cpu, usage.ru_utime + usage.ru_stime)
        self.peak = max(self.peak, usage.ru_maxrss / 1024)


def row(what: str, measured: Measured, goal: str) -> str:
    return f"| {what} | {measured.seconds:.2f} s | {measured.cpu:.2f} s | {measured.peak:.0f} MiB | {goal} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--large", type=int, metavar="MB")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="another firelane, measured in turns with this one")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    plain = WORK / args.trace.name.removesuffix(".gz")
    if not plain.exists():
        with gzip.open(args.trace) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
    pairs = [(plain, "0.5 s")]
    if args.large:
        large = WORK / f"{plain.stem}_{args.large}MB.json"
        if not large.exists():
            subprocess.run([BINARY / "bench" / "make_trace", args.trace, large, str(args.large)], check=True)
        pairs.append((large, "4 s, 800 MiB"))
    lines = ["| two of | time | CPU time | peak memory | goal |", "|---|--:|--:|--:|--:|"]
    for file, goal in pairs:
        binaries = [BINARY / "firelane", *([args.beside] if args.beside else [])]
        sides = [Measured() for _ in binaries]
        for _ in range(args.repeat):
            for binary, side in zip(binaries, sides, strict=True):
                side.run(binary, file, file)
        size = f"{file.name}, {file.stat().st_size / 1e6:,.0f} MB"
        lines.append(row(size, sides[0], goal))
        if args.beside:
            lines.append(row(f"{size}: before", sides[1], ""))
    text = "\n".join(lines) + "\n"
    print(text)
    if args.write:
        readme.write("compare.py", text)


if __name__ == "__main__":
    main()
