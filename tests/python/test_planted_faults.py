"""Recordings of CPU programs with one planted fault each: it is the first finding, and is not found once it is fixed.

tests/data/cpu_faults holds the recordings (make_cpu_faults.py makes them), so that the verdict does not depend on how
busy the machine is. src/advise/planted_faults_test.cc does the same with recordings of a GPU. Needs no torch.
"""

from pathlib import Path

import pytest

import firelane

FOLDER = Path(__file__).resolve().parents[1] / "data" / "cpu_faults"
# Only takes a small part of a CPU program's step: found, but after "operators are too small", which is about all of it.
NOT_FIRST = {"zero-grad-fills"}


def files(pattern):
    found = sorted(FOLDER.glob(pattern))
    assert found, pattern
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


def findings(path):
    return [finding["id"] for finding in firelane.open(path).diagnosis["findings"]]


@files("*.faulty.*")
def test_a_planted_fault_is_found_first(path):
    name, found = path.name.split(".")[0], findings(path)
    assert name in found if name in NOT_FIRST else found[:1] == [name]


@files("*.fixed.*")
def test_a_fixed_fault_is_not_found(path):
    assert path.name.split(".")[0] not in findings(path)


@files("*.healthy.lane")
def test_a_healthy_program_has_nothing_worth_fixing(path):
    diagnosis = firelane.open(path).diagnosis
    assert diagnosis["healthy"], diagnosis["findings"]


def test_a_slow_first_step_is_left_out_and_mentioned():
    diagnosis = firelane.open(FOLDER / "cold-start.lane").diagnosis
    assert "1 warm-up step is left out" in diagnosis["notes"]
    assert diagnosis["step"]["step_ns"] < 0.1e9  # the first one waited for 0.2 s
