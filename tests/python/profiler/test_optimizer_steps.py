"""Steps of optimizers that exist before Firelane looks: of always_on() in the middle of a program, and of attach."""

import functools
import gc
import weakref

import pytest
import torch

from firelane._always.run import Always
from firelane._auto import Plan
from firelane._optimizers import OptimizerSteps


@pytest.fixture
def steps():
    seen = []
    followed = OptimizerSteps(lambda optimizer: seen.append(optimizer.param_groups[0]["lr"]))
    followed.install()
    yield seen
    followed.remove()


def make(lr=0.5):
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    return torch.optim.SGD([p], lr=lr)


def test_always_on_sees_the_steps_of_an_optimizer_that_was_made_before_it(tmp_path):
    optimizer = make()
    always = Always(Plan(output=str(tmp_path / "run"), options={}, quiet=True), 0.005, 64 << 20)  # as always_on() does
    always.install_hooks()
    try:
        for _ in range(5):
            optimizer.step()
        assert always.step_count == 5
    finally:
        always.stop()
        always.patches.remove()
    assert "step" not in vars(optimizer)


def test_steps_are_counted_once_also_under_a_scheduler(steps):
    optimizer = make()
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert steps == [0.5, 0.25, 0.125]


def test_a_step_ends_after_torchs_range_from_the_second_on():
    optimizer, is_open, ends = make(), [False], []
    followed = OptimizerSteps(lambda _: ends.append(is_open[0]))
    step = type(optimizer).step

    def ranged(self, *args):
        is_open[0] = True
        try:
            return step(self, *args)
        finally:
            is_open[0] = False

    ranged.hooked = True
    followed.install()
    try:
        type(optimizer).step = ranged
        for _ in range(3):
            optimizer.step()
    finally:
        type(optimizer).step = step
        followed.remove()
    assert ends == [True, False, False]


def test_an_optimizer_is_freed_as_soon_as_the_program_lets_go_of_it(steps):
    optimizer = make()
    for _ in range(2):
        optimizer.step()
    freed = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert freed() is None
    finally:
        gc.enable()


def test_what_others_put_around_a_step_stays_when_ours_goes():
    optimizer, seen = make(), []
    followed = OptimizerSteps(seen.append)
    followed.install()
    optimizer.step()
    theirs = optimizer.step = functools.partial(optimizer.step)
    followed.remove()
    assert optimizer.step is theirs
    optimizer.step()
    assert len(seen) == 1
