"""When to record a window of steps, so that all of it costs no more than the budget.

Windows are drawn from the step's number: a block of 16 steps has one if its number, scrambled, ends in `zeros` zero
bits, and other bits of it say at which step. Ranks that can afford different rates still agree: what is drawn at a
lower rate is drawn at every higher one. The rate follows from what windows have cost so far, and a window that is drawn
is still left out while the account does not cover it.

Pure: no clock and no I/O in here.
"""

from __future__ import annotations

from dataclasses import dataclass

_MAX_ZEROS = 40
_BLOCK = 16  # steps
_USE = 0.8  # of the budget that windows aim at; the rest is for incidents and for what varies


def scrambled(number: int) -> int:
    """SplitMix64: the same on every rank and in every run."""
    x = (number + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return x ^ (x >> 31)


def next_drawn(first: int, count: int, zeros: int) -> int:
    """The first step of `count` from `first` on at which a window begins; -1 if there is none.

    Of each block of 16 steps at most one, so that few numbers have to be looked at.
    """
    for block in range(first // _BLOCK, (first + count - 1) // _BLOCK + 1):
        x = scrambled(block)
        if x & ((1 << zeros) - 1) == 0:
            step = block * _BLOCK + (x >> 50) % _BLOCK
            if first <= step < first + count:
                return step
    return -1


@dataclass
class Budget:
    share: float  # of the run's time
    window_ns: int  # what a window costs, until one was recorded
    elapsed_ns: int = 0
    step_count: int = 0
    timing_ns: int = 0  # in our hooks, at every step, and in our own thread
    windows_ns: int = 0  # turning the recorder on and off, and what its steps took longer
    window_count: int = 0
    most_ns: int = 0  # that one window has cost

    def add_steps(self, elapsed_ns: int, timing_ns: int, count: int) -> None:
        self.elapsed_ns += elapsed_ns
        self.timing_ns += timing_ns
        self.step_count += count

    def add_window(self, cost_ns: int) -> None:
        """A window is over. The next one is expected to cost as much as the last ones, the expensive ones above all."""
        cost_ns = max(0, cost_ns)
        self.windows_ns += cost_ns
        self.window_count += 1
        self.most_ns = max(self.most_ns, cost_ns)
        self.window_ns = cost_ns if self.window_count == 1 else max((3 * self.window_ns + cost_ns) // 4, cost_ns // 2)

    @property
    def spent_ns(self) -> int:
        return self.timing_ns + self.windows_ns

    @property
    def spent_share(self) -> float:
        return self.spent_ns / self.elapsed_ns if self.elapsed_ns else 0.0

    @property
    def zeros(self) -> int:
        """A window is recorded in one of 2**zeros blocks of steps."""
        if self.step_count == 0 or self.elapsed_ns == 0:
            return _MAX_ZEROS
        free_ns = _USE * self.share * self.elapsed_ns - self.timing_ns  # that windows may have cost so far
        affordable = free_ns / max(1, self.window_ns) / self.step_count * _BLOCK  # windows a block
        zeros = 0
        while zeros < _MAX_ZEROS and 2.0**-zeros > affordable:
            zeros += 1
        return zeros

    def covers_window(self, credit: int = 0) -> bool:
        """Whether another window fits into the budget. An incident may be `credit` windows ahead."""
        return self.spent_ns + self.window_ns <= self.share * self.elapsed_ns + credit * self.window_ns

    def draws(self, number: int) -> bool:
        return next_drawn(number, 1, self.zeros) >= 0 and self.covers_window()

    def account(self) -> dict[str, float]:
        return {
            "budget": self.share,
            "spent": round(self.spent_share, 6),
            "steps": self.step_count,
            "elapsed_ns": self.elapsed_ns,
            "timing_ns": self.timing_ns,
            "windows": self.window_count,
            "windows_ns": self.windows_ns,
            "largest_window_ns": self.most_ns,
        }
