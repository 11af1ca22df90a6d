#!/usr/bin/env python3
"""Runs PyTorch's own profiler tests with torch's profiler and with ours, and prints what passes.

    tools/torch_tests.py ~/src/pytorch                                the files of test/profiler that we answer for
    tools/torch_tests.py ~/src/pytorch -k memory test_profiler.py     one file; -k as pytest's
    tools/torch_tests.py ~/src/lightning tests/tests_pytorch/profilers/test_profiler.py      of another project

The checkout is the user's, of the version of torch that is installed (`git -C ~/src/pytorch checkout v2.11.0`); nothing
of it is kept here. Its tests need the packages expecttest and psutil. Each file runs twice, each time in a process of
its own: as it is, and after firelane.install(), before the file is imported. The table has one row for each test that
passes with torch's profiler and not with ours; docs/torch-parity.md gives the reason for each that stays. Exit code
1 if one is not in that page.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "docs" / "torch-parity.md"
FILES = (
    "test_profiler.py",
    "test_record_function.py",
    "test_execution_trace.py",
    "test_cpp_thread.py",
    "test_memory_profiler.py",
    "test_torch_tidy.py",
)
RUN = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
RUN_WITH_OURS = f"import firelane; firelane.install(); {RUN}"

Results = dict[str, tuple[str, str]]  # test -> outcome, first line of why


def outcomes(report: Path) -> Results:
    """The outcome of each test in a JUnit report: passed, failed or skipped."""
    found: Results = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        outcome, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, why = "failed", (child.get("message") or "").strip().partition("\n")[0]
            elif child.tag == "skipped" and outcome == "passed":
                outcome = "skipped"
        found[name] = (outcome, why)
    return found


def run(file: Path, program: str, more: list[str], seconds: int) -> Results | None:
    """None: the run ended without a report, because it crashed or took too long."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-c",
            program,
            str(file),
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *more,
        ]
        environment = dict(os.environ)
        if importlib.util.find_spec("firelane") is None:  # not installed here: the checkout's, built for .venv
            environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
        try:
            subprocess.run(
                command, cwd=file.parent, env=environment, stdout=subprocess.DEVNULL, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        return outcomes(report) if report.exists() else None


def listed_in(page: Path) -> set[str]:
    """The tests that the page lists: the first cell of its rows, in backquotes."""
    if not page.exists():
        return set()
    cells = (line.split("|")[1].strip() for line in page.read_text().splitlines() if line.startswith("| `"))
    return {name.strip("` ") for cell in cells for name in cell.split(",")}


def is_listed(test: str, listed: set[str]) -> bool:
    """By its name, or by the name that all forms of a parametrized test share: `test_source_multithreaded_*`."""
    method = test.rpartition(".")[2]
    return any(method == name or (name.endswith("*") and method.startswith(name[:-1])) for name in listed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("checkout", type=Path, help="a checkout of pytorch/pytorch, of the installed version")
    parser.add_argument("files", nargs="*", default=FILES, help="files in its test/profiler, or paths in the checkout")
    parser.add_argument("-k", dest="keyword", default="", help="only tests whose names match, as in pytest")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds for one file and one profiler")
    arguments = parser.parse_args()
    more = ["-k", arguments.keyword] if arguments.keyword else []
    listed = listed_in(REASONS)
    unexplained = 0
    for name in arguments.files:
        file = arguments.checkout / "test" / "profiler" / name
        if not file.exists():
            file = arguments.checkout / name
        if not file.exists():
            parser.error(f"{file} is not there: which checkout has PyTorch's tests?")
        theirs = run(file, RUN, more, arguments.timeout)
        ours = run(file, RUN_WITH_OURS, more, arguments.timeout)
        if theirs is None or ours is None:
            print(f"{name}: no result with {'torch' if theirs is None else 'firelane'}'s profiler (crash or time-out)")
            unexplained += 1
            continue
        passing = [test for test, (outcome, _) in theirs.items() if outcome == "passed"]
        kept = Counter(ours.get(test, ("missing", ""))[0] for test in passing)
        print(f"{name}: {len(passing)} pass with torch's profiler, {kept['passed']} of them with ours")
        for test in passing:
            outcome, why = ours.get(test, ("missing", ""))
            if outcome != "passed":
                known = is_listed(test, listed)
                unexplained += not known
                print(f"  {'listed' if known else 'NEW   '}  {outcome:7}  {test}: {why[:160]}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
