"""What makes an incident: a step that is slow against its own history, a program that hangs, memory that grows.

Pure, but for the clock that callers pass in; run.py asks these at every step and once a second.
"""

from __future__ import annotations

import statistics
from collections import deque
from itertools import pairwise

_HISTORY = 256  # steps
_FEWEST = 32  # before which nothing is called slow
_LEARN_EVERY = 32  # steps; medians are not computed at each one


class SlowSteps:
    """Whether a step is slow: beyond the median by half of it, and by eight times the usual deviation."""

    def __init__(self, factor: float = 1.5) -> None:
        self._factor = factor
        self._history: deque[int] = deque(maxlen=_HISTORY)
        self._until_learning = _FEWEST
        self.usual_ns = 0
        self.limit_ns = 0  # 0: not known yet

    def is_slow(self, duration_ns: int) -> bool:
        slow = 0 < self.limit_ns < duration_ns
        self._history.append(duration_ns)
        self._until_learning -= 1
        if self._until_learning <= 0:
            self._learn()
        return slow

    def _learn(self) -> None:
        self._until_learning = _LEARN_EVERY
        self.usual_ns = int(statistics.median(self._history))
        deviation = 1.4826 * statistics.median(abs(ns - self.usual_ns) for ns in self._history)
        self.limit_ns = int(self.usual_ns + max((self._factor - 1) * self.usual_ns, 8 * deviation))


class Hang:
    """No step for a long time: `factor` times the usual one, at least `least_ns`. Once per step."""

    def __init__(self, factor: float = 20, least_ns: int = 30_000_000_000) -> None:
        self._factor = factor
        self._least_ns = least_ns
        self.reported = -1  # step

    def limit_ns(self, usual_ns: int) -> int:
        """0: not known yet."""
        return int(max(self._least_ns, self._factor * usual_ns)) if usual_ns else 0

    def hangs(self, step: int, since_ns: int, usual_ns: int) -> bool:
        if step == self.reported or usual_ns == 0 or since_ns < self.limit_ns(usual_ns):
            return False
        self.reported = step
        return True


class Growth:
    """Memory that goes on growing, within minutes or within weeks: each quarter of the samples lies above the one
    before, by a tenth in all. Each horizon is four times as long as the one before it, with as many samples. Told
    once per doubling of what it then was."""

    HORIZONS = 8  # with a sample a second: two minutes to three weeks
    LEAST_PART = 1 / 8  # of the growth, from a quarter to the next: a quarter each if it is steady, none on a plateau

    def __init__(self, samples: int = 120, least_bytes: int = 64 << 20) -> None:
        self._horizons: list[deque[int]] = [deque(maxlen=samples) for _ in range(self.HORIZONS)]
        self._count = 0
        self._least_bytes = least_bytes
        self._told_at = 0

    def grows(self, used_bytes: int) -> tuple[int, int] | None:
        """(bytes at the beginning, bytes now) if it does."""
        found = None
        for horizon, values in enumerate(self._horizons):
            if self._count % 4**horizon != 0:
                break
            values.append(used_bytes)
            if found is None and used_bytes >= 2 * self._told_at and len(values) == values.maxlen:
                found = self._growth_of(list(values))
        self._count += 1
        if found:
            self._told_at = used_bytes
        return found

    def _growth_of(self, values: list[int]) -> tuple[int, int] | None:
        grown = values[-1] - values[0]
        if grown < max(self._least_bytes, values[0] // 10):
            return None
        quarter = len(values) // 4
        parts = [values[i * quarter : (i + 1) * quarter] for i in range(4)]
        for before, after in pairwise(parts):
            if (
                max(before) > min(after)
                or statistics.median(after) - statistics.median(before) < self.LEAST_PART * grown
            ):
                return None
        return values[0], values[-1]
