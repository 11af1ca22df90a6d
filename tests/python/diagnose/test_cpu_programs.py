"""The programs of the CPU scoreboard run and can be diagnosed live. What is found in them: test_planted_faults.py."""

import pytest

from cpu_programs import FAULTS, HEALTHY
from recorded import diagnosis, ids, record


@pytest.mark.parametrize("planted", [True, False], ids=["faulty", "fixed"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_program_runs_with_and_without_its_fault(name, planted):
    step = FAULTS[name].make(planted)
    step()
    step()


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_runs(name):
    HEALTHY[name]()()


@pytest.mark.parametrize("planted", [True, False], ids=["faulty", "fixed"])
def test_a_leak_is_found_live(planted, tmp_path):
    """Live only for a fault that does not depend on time: other programs on the machine cannot hide it."""
    fault = FAULTS["memory-leak"]
    record(fault.make(planted), tmp_path / "run.lane", **fault.flags)
    assert ("memory-leak" in ids(diagnosis(tmp_path / "run.lane"))) == planted
