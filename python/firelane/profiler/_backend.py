"""The one place that names the native recorder, so that tests can put another in its place."""

from __future__ import annotations

from typing import Any

from firelane import _record


def start(**options: Any) -> Any:
    return _record.start(_record.RecordOptions(**options))


def step_timer() -> Any:
    return _record.StepTimer()


def begin_range(name: str) -> int:
    return _record.begin_range(name)


def end_range(id: int) -> None:
    _record.end_range(id)
