"""The programs of the GPU scoreboard run: here in small sizes, so that a mistake in them costs no GPU time."""

import pytest

import gpu_memory
import gpu_programs
from gpu_models import Machine

FAULTS = {**gpu_programs.FAULTS, **gpu_memory.FAULTS, **gpu_programs.COMPILED}


@pytest.mark.parametrize("name", FAULTS)
def test_a_program_runs_with_and_without_its_fault(name):
    for fault in (True, False):
        step = FAULTS[name].make(Machine("cpu"), fault)
        step()
        step()


@pytest.mark.parametrize("name", gpu_programs.HEALTHY)
def test_a_healthy_program_runs(name):
    gpu_programs.HEALTHY[name](Machine("cpu"))()
