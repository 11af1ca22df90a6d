"""Hangs in which a thread keeps the GIL: a native thread writes the stacks then, as no Python code runs any more."""

from __future__ import annotations

from pathlib import Path


class GilWatch:
    def __init__(self, kept: Path) -> None:
        from firelane._trace import Watchdog

        self._kept = kept
        self._watchdog = Watchdog(str(kept))
        self._limit_ms = 0

    def step(self, step: int) -> None:
        """The training thread makes steps."""
        self._watchdog.feed(step, self._limit_ms)

    def tick(self, step: int, limit_ns: int) -> tuple[int, Path] | None:
        """Python code runs. Unless one of both is called again within the limit (0: any time), an incident is written.
        The step and the folder of one that was, told once."""
        self._limit_ms = limit_ns // 1_000_000
        self._watchdog.feed(step, self._limit_ms)
        written = self._watchdog.take_incident()
        return (written, self._kept / f"step-{written:09}-hang") if written >= 0 else None
