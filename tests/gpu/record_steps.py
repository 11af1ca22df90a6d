"""Records steps of a program with only firelane's recorder, and times the steps before and after without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

UNRECORDED = 6  # steps before and after the recorded ones; timed with all hooks off


def record_steps(
    native,
    step: Callable[[], object],
    path: Path,
    flags: dict[str, bool],
    *,
    recorded: int = 4,
    cuda: bool = True,
    timed: bool = True,
) -> list[str]:
    """UNRECORDED steps, one to warm up, `recorded` recorded ones, UNRECORDED steps. Returns the losses.

    Without `timed` the file does not mention unrecorded steps, as if every step had been recorded.
    """
    timer = native.StepTimer(cuda)
    first, last = UNRECORDED + 1, UNRECORDED + 1 + recorded
    session: Any = None
    internals: Any = torch._C._profiler  # as firelane.profiler does: torch.compile names its launches
    fast_op = internals._RecordFunctionFast
    for number in range(last + UNRECORDED):
        timer.finish()  # turning the recorder on or off belongs to no step
        if number == first - 1:
            session = native.start(native.RecordOptions(cuda=cuda, cuda_detach=True, start_paused=True, **flags))
        if number == first:
            internals._RecordFunctionFast = native.FastOp
            torch.autograd.profiler._run_on_profiler_start()
            if cuda:
                session.resume_device()
            session.resume()
        if number == last:
            session.pause()
            if cuda:
                session.stop_device()
            internals._RecordFunctionFast = fast_op
            torch.autograd.profiler._run_on_profiler_stop()
        is_recorded = first <= number < last
        timer.step(number, "recorded" if is_recorded else "warmup" if number in (0, first - 1, last) else "unrecorded")
        if is_recorded:
            with native.Range(f"ProfilerStep#{number}"):
                step()
        else:
            step()
    timer.finish()
    if timed:
        session.add_steps(timer)
    session.stop()
    session.save(str(path))
    return [f"{x.reason}: {x.count}" for x in session.losses]
