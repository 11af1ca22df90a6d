"""The only place that touches the native recorder, so that tests can substitute a fake."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.profiler as torch_profiler

from firelane import _record

if TYPE_CHECKING:
    from ._recording import Recording

# Called with each Recording before it starts: `firelane record` steps aside for the program's own profiler.
on_start: list[Callable[[Recording], None]] = []


_torch_internals: Any = torch._C._profiler  # one of its classes is replaced, which its types forbid
_torch_fast_op = _torch_internals._RecordFunctionFast


def start(**options: Any) -> _record.Recorder:
    return _record.start(_record.RecordOptions(**options))


def step_timer(on_device: bool = False) -> _record.StepTimer:
    return _record.StepTimer(on_device)


def name_compiled_kernels(on: bool) -> None:
    """While on, torch.compile reports which kernels it launches.

    It only does so while a profiler runs, and through a class that only knows torch's own profiler: ours replaces it.
    """
    if on:
        torch_profiler._run_on_profiler_start()
        _torch_internals._RecordFunctionFast = _record.FastOp
    else:
        _torch_internals._RecordFunctionFast = _torch_fast_op
        torch_profiler._run_on_profiler_stop()


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
