"""The one place that names the native recorder, so that tests can put another in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.profiler as torch_profiler

from firelane import _record

if TYPE_CHECKING:
    from ._recording import Recording

# Called with each Recording before it starts: `firelane record` stands aside for the program's own.
on_start: list[Callable[[Recording], None]] = []


_torch_internals: Any = torch._C._profiler  # a class of it is exchanged, which its types forbid
_fast_op_of_torch = _torch_internals._RecordFunctionFast


def start(**options: Any) -> _record.Recorder:
    return _record.start(_record.RecordOptions(**options))


def step_timer(on_device: bool = False) -> _record.StepTimer:
    return _record.StepTimer(on_device)


def torch_says_names(on: bool) -> None:
    """While on, torch.compile says which kernel it launches. It does so for a profiler only, and through a class that
    knows no profiler but torch's: ours takes its place."""
    if on:
        torch_profiler._run_on_profiler_start()
        _torch_internals._RecordFunctionFast = _record.FastOp
    else:
        _torch_internals._RecordFunctionFast = _fast_op_of_torch
        torch_profiler._run_on_profiler_stop()


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
