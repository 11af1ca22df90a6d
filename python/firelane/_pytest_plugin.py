"""The fixture firelane_gate: a test that fails when traces break their limits.

    def test_step(firelane_gate, tmp_path):
        for run in range(4):
            train = ["firelane", "record", "-o", tmp_path / f"{run}.lane", "--", "python", "train.py"]
            subprocess.run(train, check=True)
        firelane_gate(tmp_path, limits={"step_time": "3%"})

The baseline is the store's, under the test's name; `pytest --firelane-update` adds the runs to it instead of
judging them. What cannot be told skips the test, unless `--firelane-inconclusive=fail` (or pass) says otherwise.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("firelane")
    group.addoption("--firelane-store", default=".firelane/baselines", help="folder of firelane baseline")
    group.addoption("--firelane-update", action="store_true", help="add the runs to the baseline without judging them")
    group.addoption(
        "--firelane-inconclusive",
        choices=("skip", "fail", "pass"),
        default="skip",
        help="what a test does if the result is inconclusive",
    )


def _command() -> str:
    beside = Path(sys.executable).with_name("firelane")
    found = os.environ.get("FIRELANE_BINARY") or (str(beside) if beside.exists() else shutil.which("firelane"))
    if found is None:
        raise pytest.UsageError("firelane_gate: the command firelane was not found; it comes with pip install firelane")
    return found


@pytest.fixture
def firelane_gate(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Judges traces against the baseline of this test."""
    from ._compare import Side, _files, gate

    options = request.config.option
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", request.node.nodeid.split("/")[-1]).strip("-")

    def judge(candidate: Side, *, label: str = name, baseline: Side | None = None, **wanted: Any) -> Any:
        if options.firelane_update and baseline is None:
            command = [_command(), "baseline", "add", "--store", options.firelane_store, "--label", label]
            subprocess.run([*command, *_files(candidate)], check=True)
            pytest.skip(f"added to the baseline {label}")
        answer = gate(candidate, baseline=baseline, store=options.firelane_store, label=label, **wanted)
        if answer["status"] == "does not hold":
            pytest.fail(str(answer), pytrace=False)
        if answer["status"] != "holds" and options.firelane_inconclusive != "pass":
            (pytest.fail if options.firelane_inconclusive == "fail" else pytest.skip)(answer["headline"])
        return answer

    return judge
