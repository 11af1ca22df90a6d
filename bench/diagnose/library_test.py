"""The programs of the library run where there is no GPU, with their fault and mended; half of them are held out."""

import pytest
import torch

from gpu_models import Machine
from kinds_other import Experts
from library import GAINS, HELD_OUT, LIBRARY, ON_GPU_ONLY, TUNING, half_of


@pytest.mark.parametrize("name", [*LIBRARY, *(name for name in GAINS if name not in ON_GPU_ONLY)])
def test_a_program_runs_on_a_cpu_with_its_fault_and_mended(name):
    torch.manual_seed(0)
    for fault in (True, False):
        step = {**LIBRARY, **GAINS}[name].make(Machine("cpu"), fault)
        step()
        step()


def test_every_second_name_is_held_out():
    names = sorted(LIBRARY)
    assert [half_of(name) for name in names[:4]] == ["tuning", "held out", "tuning", "held out"]
    assert sorted([*TUNING, *HELD_OUT]) == names
    assert {half_of(name) for name in GAINS} == {"gains"}


def test_experts_in_one_batch_compute_what_the_loop_computes():
    torch.manual_seed(0)
    loop, batched = Experts(8, 4, loop=True), Experts(8, 4, loop=False)
    batched.load_state_dict(loop.state_dict())
    tokens = torch.randn(16, 8)
    slots = 2 * len(tokens) // 4
    busiest = loop.router(tokens).argmax(-1).bincount().max()
    assert busiest <= slots, "no token may be left out here"
    torch.testing.assert_close(loop(tokens), batched(tokens))
