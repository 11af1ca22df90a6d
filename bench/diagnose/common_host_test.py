"""The programs of kinds_common_data.py and kinds_common_host.py run without a GPU, and compute the same mended."""

import pytest
import torch

import kinds_common_data
import kinds_common_host
from gpu_models import Machine
from kinds_common_host import rolled

PROGRAMS = {**kinds_common_data.PROGRAMS, **kinds_common_host.PROGRAMS}
KEPT = kinds_common_data.KEPT | kinds_common_host.KEPT
NEEDS_GPU = {"photos-sent-as-floats", "readings-sent-as-doubles"}  # pinned memory
CPU = Machine("cpu")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NEEDS_GPU])
def test_a_common_program_runs_on_a_cpu_with_its_fault_and_mended(name):
    benchmark = torch.backends.cudnn.benchmark
    for fault in (True, False):
        torch.manual_seed(0)
        step = PROGRAMS[name].make(CPU, fault)
        step()
        step()
    torch.backends.cudnn.benchmark = benchmark


def test_half_of_the_common_programs_is_kept_from_tuning_and_each_says_what_is_wrong():
    assert len(PROGRAMS) == 2 * len(KEPT)
    assert set(PROGRAMS) > KEPT
    assert all(each.says and each.findings for each in PROGRAMS.values())


def test_moves_are_drawn_the_same_with_and_without_checks():
    answers = []
    for fault in (True, False):
        torch.manual_seed(0)
        answers.append(rolled(CPU, fault)())
    torch.testing.assert_close(*answers)
