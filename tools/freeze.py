"""Freezes processes at random: what an oversubscribed machine does to each of them now and then, done all the time.

While a `Freezer` runs, descendants of a process, and the process itself, are stopped (SIGSTOP) for 0.05 to 2 seconds
and continued. Tests that expect something within a window of time, or that two processes advance together, fail.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
from pathlib import Path

SHORTEST_S = 0.05
LONGEST_S = 2.0
LONGEST_PAUSE_S = 0.5


def stat_of(pid: int) -> tuple[str, int] | None:
    """State and parent of a process, None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def descendants(root: int) -> list[int]:
    """Of a process: itself first, without those that have ended."""
    children: dict[int, list[int]] = {}
    for name in (path.name for path in Path("/proc").iterdir()):
        if name.isdigit() and (stat := stat_of(int(name))) and stat[0] not in "ZX":
            children.setdefault(stat[1], []).append(int(name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


class Freezer:
    """A context: freezes `count` processes at a time below `root`, until it is left. None stays frozen. Those whose
    command line matches `spared` are left alone: a program under test may rightly refuse to work on a stopped one."""

    def __init__(self, root: int, count: int, seed: int, spared: str = "") -> None:
        self.root = root
        self.spared = re.compile(spared) if spared else None
        self.freezes = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(seed * 1000 + i),)) for i in range(count)
        ]

    def __enter__(self) -> Freezer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, chance: random.Random) -> None:
        while not self._over.wait(chance.uniform(0, LONGEST_PAUSE_S)):
            pid = self._freeze_one(chance)
            if pid is None:
                continue
            self._over.wait(
                SHORTEST_S * (LONGEST_S / SHORTEST_S) ** chance.random()
            )  # short ones as often as long ones
            signal_to(pid, signal.SIGCONT)

    def _freeze_one(self, chance: random.Random) -> int | None:
        with self._lock:
            # What a test, a debugger or another thread has stopped is not ours to continue.
            found = [
                pid
                for pid in descendants(self.root)
                if (stat := stat_of(pid))
                and stat[0] not in "TtZX"
                and not (self.spared and self.spared.search(command_of(pid)))
            ]
            if not found:
                return None
            pid = chance.choice(found)
            signal_to(pid, signal.SIGSTOP)
            self.freezes += 1
            return pid


def signal_to(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
