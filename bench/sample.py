#!/usr/bin/env python3
"""What sampling costs the program, next to py-spy: the same work alone and under each sampler, in turns.

    bench/sample.py [--threads 160] [--rates 100 1000] [--runs 5] [--py-spy PATH] [--write]

A program with that many Python threads, most of which wait and wake up ten times a second, does a fixed piece of work
on its main thread. Each round runs it alone and once under each sampler, in random order. The program's time is its own
processor time (user and system), which other programs on the machine hardly change; beside it the time on the wall and
the sampler's own processor time. Medians over the rounds, as ratios to the runs alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 120  # a run that takes longer is called a hang

PROGRAM = """
import json, resource, sys, threading, time

def wait():
    time.sleep(0.1)

def worker():
    while True:
        wait()

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

for _ in range(int(sys.argv[1])):
    threading.Thread(target=worker, daemon=True).start()
print(flush=True)
sys.stdin.readline()  # until the sampler is there
before, begin = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
for _ in range(int(sys.argv[2])):
    fib(20)
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps({"cpu": cpu, "wall": time.monotonic() - begin}), flush=True)
"""


def run(python: str, threads: int, work: int, sampler: list[str], folder: Path) -> dict[str, float] | None:
    """None: it hung."""
    program = subprocess.Popen(
        [python, "-c", PROGRAM, str(threads), str(work)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None and program.stdout is not None
    program.stdout.readline()
    watcher, begin = None, time.monotonic()
    if sampler:
        command = [word.replace("PID", str(program.pid)).replace("OUT", str(folder / "out")) for word in sampler]
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)  # both read the program's symbols first
    try:
        output, _ = program.communicate("\n", timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        output = ""
    program.kill()
    program.wait()
    share = 0.0  # of a core, while the sampler ran
    if watcher is not None:
        _, _, usage = os.wait4(watcher.pid, 0)
        share = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - begin)
    return {**json.loads(output), "own": share} if output else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=160)
    parser.add_argument("--rates", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=int, default=3000, help="how often fib(20) is computed")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--py-spy", default="", help="its command; without it only firelane is measured")
    parser.add_argument("--write", action="store_true", help="update bench/README.md")
    args = parser.parse_args()
    firelane = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
    samplers: dict[str, list[str]] = {"alone": []}
    for rate in args.rates:
        samplers[f"firelane sample, {rate} Hz"] = [
            *[firelane, "sample", "-p", "PID", "--rate", str(rate), "--force", "-o", "OUT"]
        ]
        if args.py_spy:
            record = [args.py_spy, "record", "-p", "PID", "-r", str(rate), "-t", "-o", "OUT", "-f", "speedscope"]
            samplers[f"py-spy, {rate} Hz"] = record
            samplers[f"py-spy --nonblocking, {rate} Hz"] = [*record, "--nonblocking"]
    results: dict[str, list[dict[str, float] | None]] = {name: [] for name in samplers}
    with tempfile.TemporaryDirectory(prefix="firelane-sample-bench-") as folder:
        for number in range(args.runs):
            for name in random.sample(list(samplers), len(samplers)):
                results[name].append(run(args.python, args.threads, args.work, samplers[name], Path(folder)))
                print(f"round {number + 1}, {name}: {results[name][-1]}", file=sys.stderr)
    text = f"{args.threads} threads, medians of {args.runs} runs in turns\n\n"
    text += "| | program's CPU time | time on the wall | the sampler's own, of a core |\n|---|--:|--:|--:|\n"
    medians = {}
    for name, runs in results.items():
        good = [each for each in runs if each is not None]
        hangs = len(runs) - len(good)
        note = f", {hangs} of {len(runs)} hung" if hangs else ""
        if not good:
            text += f"| {name}{note} | | | |\n"
            continue
        medians[name] = {key: statistics.median(each[key] for each in good) for key in ("cpu", "wall", "own")}
        mine, alone = medians[name], medians["alone"]
        share = f"{mine['own']:.1%}" if samplers[name] else ""
        text += (
            f"| {name}{note} | {mine['cpu'] / alone['cpu']:.3f}x | {mine['wall'] / alone['wall']:.2f}x | {share} |\n"
        )
    print(text)
    if args.write:
        readme.write("sample.py", text)


if __name__ == "__main__":
    main()
