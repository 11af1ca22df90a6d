"""When to record: which step gets which ProfilerAction.

`ProfilerAction` is torch's own enum, so schedules written for torch.profiler, and those of
Lightning, accelerate and transformers, work as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch.profiler import ProfilerAction

Schedule = Callable[[int], ProfilerAction]


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """A cycle of `wait` idle, `warmup` discarded and `active` recorded steps.

    The cycle starts after `skip_first` steps and runs `repeat` times (0: forever).
    With `skip_first_wait` the first cycle begins at its warm-up.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments: wait={wait}, warmup={warmup}, repeat={repeat} and "
            f"skip_first={skip_first} must be at least 0, active={active} at least 1."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        place = step - skip_first + (wait if skip_first_wait else 0)
        if 0 < repeat <= place // cycle:
            return ProfilerAction.NONE
        place %= cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    action_of.active = active  # type: ignore[attr-defined]  # read by code that asks how many steps a window has
    return action_of


def always_record(_: int) -> ProfilerAction:
    """The default schedule."""
    return ProfilerAction.RECORD
