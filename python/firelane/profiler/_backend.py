"""The one place that names the native recorder, so that tests can put another in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firelane import _record

# Called with each Recording before it starts: `firelane record` stands aside for the program's own.
on_start: list[Callable[[Any], None]] = []


def start(**options: Any) -> Any:
    return _record.start(_record.RecordOptions(**options))


def step_timer() -> Any:
    return _record.StepTimer()


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
