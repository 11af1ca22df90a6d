"""Hangs in which a thread keeps the GIL: a native thread writes the stacks then, as no Python code runs any more."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import Always


class GilWatch:
    def __init__(self, kept: Path) -> None:
        from firelane._trace import Watchdog

        self._kept = kept
        self._watchdog = Watchdog(str(kept))
        self._limit_ms = 0

    def step(self, step: int) -> None:
        """The training thread makes steps."""
        self._watchdog.feed(step, self._limit_ms)

    def tick(self, step: int, limit_ns: int, *, is_told: bool = False) -> tuple[int, Path] | None:
        """Python code runs. Unless one of both is called again within the limit (0: any time), an incident is written;
        none for a step of which somebody else has told. The step and the folder of one that was, told once: its files
        may still be on their way."""
        self._limit_ms = limit_ns // 1_000_000
        self._watchdog.feed(step, 0 if is_told else self._limit_ms)
        written = self._watchdog.take_incident()
        return (written, self._kept / f"step-{written:09}-hang") if written >= 0 else None

    def stop(self) -> None:
        """Waits a little for files that are being written."""
        self._watchdog.end(longest_wait_ms=1000)


def tick(always: Always, limit_ns: int) -> None:
    """A tick of a recording. Incidents that the native thread writes are counted, and as far apart, as all others."""
    watch = always.gil_watch
    if watch is None:
        return
    if always.incident_count >= always.most_incidents:
        limit_ns = 0
    elif limit_ns and "hang" in always.last_incident:
        limit_ns = max(limit_ns, always.last_incident["hang"][0] + always.quiet_ns - time.perf_counter_ns())
    if written := watch.tick(always.step_count, limit_ns, is_told=always.hang.reported == always.step_count):
        always.hang.reported, always.wanted = written
        always.count_incident("hang", 1.0)
