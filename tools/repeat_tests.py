#!/usr/bin/env python3
"""Runs tests many times on busy cores: what fails once in a hundred runs fails here.

    tools/repeat_tests.py --ctest '^record/core[.]'                         50 rounds in build/dev
    tools/repeat_tests.py --ctest FullDisk --build build/tsan --runs 500
    tools/repeat_tests.py --pytest tests/python/test_record.py -k ranks     what follows --pytest is pytest's
    tools/repeat_tests.py --freeze 2 --command node viewer/e2e/run.mjs      any command that fails when a test does
    tools/repeat_tests.py --at-once 24 --load 0 --pytest tests/python/test_*.py    many cores: files beside each other

A round runs each test once; beside it, --load processes do nothing but compute. With --freeze, some of the processes
that the round has started stand still at any time, for up to two seconds each (freeze.py). With --at-once, a round is
cut into pytest's files, in another order each time, and that many of them run beside each other, of several rounds if
need be. Prints how often each test ran and failed, also when it is interrupted (Ctrl-C, kill), and keeps the output of
failures. Exit code 1 if one failed, 2 if there was nothing to run.
"""

from __future__ import annotations

import argparse
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import cpu_count
from pathlib import Path

from freeze import Freezer

ROOT = Path(__file__).resolve().parent.parent
RUNNING: set[subprocess.Popen[str]] = set()  # ended when the user interrupts
# Computes until its parent is gone, however that ended.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"


@dataclass
class Tally:
    """Runs and failures by test; a skipped test did not run."""

    runs: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, job: Job, run: subprocess.CompletedProcess[str], output: Path) -> bool:
        """Counts what a job ran, writes the output of failures below `output`. False: it ran no test."""
        with self.lock:
            if job.report is None:
                self.add_command(job.command, run, output, job.round_number)
                return True
            return job.report.exists() and self.add_report(job.report, output, job.round_number)

    def add_report(self, report: Path, output: Path, round_number: int) -> bool:
        """What a JUnit file says. False: it has no tests."""
        cases = list(ET.parse(report).getroot().iter("testcase"))
        for case in cases:
            if case.find("skipped") is not None:
                continue
            name = case.attrib["name"]
            folder = case.attrib.get("classname", name)  # ctest repeats the name here, pytest has the module
            test = name if folder == name else f"{folder}::{name}"
            self.runs[test] += 1
            if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
                self.failures[test] += 1
                text = "\n".join(part.text or part.get("message") or "" for part in case)
                file = output / f"{test.replace('/', '_')[:150]}.{round_number}.txt"
                file.write_text(text)
        return bool(cases)

    def add_command(
        self, words: list[str], run: subprocess.CompletedProcess[str], output: Path, round_number: int
    ) -> None:
        """Counts a run that has no report: its exit code is the result."""
        name = shlex.join(words)
        self.runs[name] += 1
        if run.returncode != 0:
            self.failures[name] += 1
            file = output / f"{name.replace('/', '_')[:150]}.{round_number}.txt"
            file.write_text(run.stdout + run.stderr)

    def table(self) -> str:
        tests = sorted(self.runs, key=lambda test: (-self.failures[test], test))
        rows = [f"{self.runs[test]:6}  {self.failures[test]:6}  {test}" for test in tests]
        return "\n".join(["  runs  failed  test", *rows])


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    load = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()


@dataclass
class Job:
    """One command of a round. It writes `report`; a command of the user's own has none."""

    round_number: int
    command: list[str]
    report: Path | None


def jobs_of(args: argparse.Namespace, round_number: int) -> list[Job]:
    """What a round runs, in order."""
    jobs: list[Job] = []

    def add(command: list[str], report_option: str | None) -> None:
        report = None
        if report_option:
            report = args.output.resolve() / f"round.{round_number}.{len(jobs)}.xml"
            command = [*command, report_option, str(report)]
        jobs.append(Job(round_number, command, report))

    if args.ctest:
        words = ["ctest", "--test-dir", str(args.build.resolve()), "-R", args.ctest, "-j", str(args.jobs)]
        add([*words, "--output-on-failure", "--test-output-size-failed", "100000"], "--output-junit")
    pytest = [sys.executable, "-m", "pytest", "-q"]
    files = [word for word in args.pytest if args.at_once > 1 and word.partition("::")[0].endswith(".py")]
    random.Random(args.seed + round_number).shuffle(files)
    for file in files:
        add([*pytest, *(word for word in args.pytest if word == file or word not in files)], "--junitxml")
    if args.pytest and not files:
        add([*pytest, *args.pytest], "--junitxml")
    if args.command:
        add(args.command, None)
    return jobs


def run_frozen(command: list[str], args: argparse.Namespace, seed: int) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    RUNNING.add(process)
    try:
        with Freezer(process.pid, args.freeze, seed, args.spare):
            stdout, stderr = process.communicate()
    finally:
        process.kill()
        RUNNING.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Runs tests many times on busy cores.")
    parser.add_argument("--runs", type=int, default=50, help="rounds (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after this time")
    parser.add_argument("--load", type=int, default=cpu_count(), help="busy processes (default: one a core)")
    parser.add_argument("--freeze", type=int, default=0, metavar="N", help="keep N of the round's processes frozen")
    parser.add_argument("--spare", metavar="REGEX", default="", help="of --freeze: commands that are left alone")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of --freeze (default: by chance)")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="run N of pytest's files at a time")
    parser.add_argument("--jobs", type=int, default=1, help="tests at once, of ctest (default: %(default)s)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="for ctest (default: build/dev)")
    parser.add_argument("--output", type=Path, default=ROOT / "build/repeat", help="failures (default: build/repeat)")
    parser.add_argument("--ctest", metavar="REGEX", help="tests of ctest")
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="arguments of pytest; last")
    parser.add_argument("--command", nargs=argparse.REMAINDER, default=[], help="a command of its own; last")
    args = parser.parse_args(argv)

    if args.freeze:
        print(f"seed {args.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    args.output.mkdir(parents=True, exist_ok=True)
    tally = Tally()
    end = time.monotonic() + args.minutes * 60
    without_tests: list[str] = []

    def run_job(job: Job) -> None:
        if time.monotonic() >= end or (without_tests and args.at_once == 1):
            return
        run = run_frozen(job.command, args, args.seed + job.round_number)
        if not tally.add(job, run, args.output):
            without_tests.append(run.stdout + run.stderr)
        if job.report:
            job.report.unlink(missing_ok=True)

    with busy_cores(args.load), ThreadPoolExecutor(args.at_once) as pool:
        waiting: deque[Future[None]] = deque()
        try:
            for round_number in range(1, args.runs + 1):
                if time.monotonic() >= end or (without_tests and args.at_once == 1):
                    break
                waiting.extend(pool.submit(run_job, job) for job in jobs_of(args, round_number))
                # The next round is queued while the last jobs of this one run, so that no core waits for the longest.
                while len(waiting) >= args.at_once:
                    waiting.popleft().result()
                print(f"round {round_number}: {sum(tally.failures.values())} failures so far", flush=True)
            for future in waiting:
                future.result()
        except KeyboardInterrupt:
            print(f"interrupted in round {round_number}")
            end = 0
            for process in list(RUNNING):
                process.kill()
    if without_tests and (args.at_once == 1 or not tally.runs):
        print(without_tests[0], file=sys.stderr)
        return 2
    print(tally.table())
    failed = sum(tally.failures.values())
    print(
        f"{len(tally.runs)} tests, {sum(tally.runs.values())} runs, {failed} failed"
        + (f": {args.output}" if failed else "")
    )
    if not tally.runs:
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
