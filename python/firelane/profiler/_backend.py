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
_KINETO = _torch_internals.ActiveProfilerType.KINETO


def _profiler_enabled() -> bool:
    return True


def _profiler_type() -> Any:
    return _KINETO


# What torch and libraries on top of it ask to learn whether a profiler is on: they then describe what they do (ranges
# of IterDataPipes, kernels of torch.compile). Their C++ side asks torch's own profiler, which is off and stays off.
_ANSWERS: tuple[tuple[Any, str, Any], ...] = (
    (_torch_internals, "_RecordFunctionFast", _record.FastOp),
    (torch.autograd, "_profiler_enabled", _profiler_enabled),
    (torch._C._autograd, "_profiler_enabled", _profiler_enabled),
    (torch._C._autograd, "_profiler_type", _profiler_type),
)
_own_answers: list[tuple[Any, str, Any]] = []


def start(**options: Any) -> _record.Recorder:
    return _record.start(_record.RecordOptions(**options))


def describe_owners(describe: Callable[[Any], Any] | None) -> None:
    _record.describe_owners(describe)


def take_owners() -> list[tuple[str | None, Any]]:
    return _record.take_owners()


def step_timer(on_device: bool = False) -> _record.StepTimer:
    return _record.StepTimer(on_device)


def appear_on(on: bool, with_inputs: bool = False) -> None:
    """While on, code that asks whether a profiler records is told so, and reports its ranges and kernels.

    It only does so while a profiler runs, and torch's answers only know torch's own profiler.
    """
    if on:
        torch_profiler._run_on_profiler_start()
        _record.set_fast_op_inputs(with_inputs)
        for module, name, answer in _ANSWERS:
            if hasattr(module, name):
                _own_answers.append((module, name, getattr(module, name)))
                setattr(module, name, answer)
    else:
        while _own_answers:
            module, name, own = _own_answers.pop()
            setattr(module, name, own)
        torch_profiler._run_on_profiler_stop()


def kineto_step(name: str) -> None:
    """Counts a step where torch counts those of Kineto's daemon."""
    torch_profiler.KinetoStepTracker.increment_step(name)


def init_kineto_steps(name: str) -> None:
    torch_profiler.KinetoStepTracker.init_step_count(name)


def forget_kineto_steps(name: str) -> None:
    torch_profiler.KinetoStepTracker.erase_step_count(name)


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
