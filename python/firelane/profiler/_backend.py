"""The only module that uses the native recorder, so that tests can replace it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.autograd.profiler as torch_profiler

from firelane import _record

# Called with each Recording before it starts: `firelane record` steps aside for the program's own.
on_start: list[Callable[[Any], None]] = []


_fast_op_of_torch = torch._C._profiler._RecordFunctionFast


def start(**options: Any) -> Any:
    return _record.start(_record.RecordOptions(**options))


def step_timer(on_device: bool = False) -> Any:
    return _record.StepTimer(on_device)


def torch_names_kernels(on: bool) -> None:
    """While on, torch.compile announces the kernels it launches. It does so only for torch's profiler, through a class that
    ours replaces."""
    if on:
        torch_profiler._run_on_profiler_start()
        torch._C._profiler._RecordFunctionFast = _record.FastOp
    else:
        torch._C._profiler._RecordFunctionFast = _fast_op_of_torch
        torch_profiler._run_on_profiler_stop()


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
