"""What happens between two steps: one table, (action before, action now) -> methods of the profiler.

`None` as the action now means stop(). A pair that is not in the table does nothing. The table is torch.profiler's,
including two oddities: an aborted warm-up is started and stopped without a callback, and a recording that runs into
NONE or WARMUP is discarded with a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerAction

Pair = tuple[ProfilerAction, "ProfilerAction | None"]

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE

_BEGIN = ("prepare_trace", "start_trace")
_DELIVER = ("stop_trace", "_trace_ready")
_WARN = "warn"

TRANSITIONS: dict[Pair, tuple[str, ...]] = {
    (NONE, NONE): (),
    (NONE, WARMUP): ("prepare_trace",),
    (NONE, RECORD): _BEGIN,
    (NONE, SAVE): _BEGIN,
    (WARMUP, NONE): (_WARN, "start_trace", "stop_trace"),
    (WARMUP, WARMUP): (),
    (WARMUP, RECORD): ("start_trace",),
    (WARMUP, SAVE): ("start_trace",),
    (WARMUP, None): ("start_trace", "stop_trace"),
    (RECORD, NONE): (_WARN, "stop_trace"),
    (RECORD, WARMUP): (_WARN, "stop_trace"),
    (RECORD, RECORD): (),
    (RECORD, SAVE): (),
    (RECORD, None): _DELIVER,
    (SAVE, NONE): _DELIVER,
    (SAVE, WARMUP): (*_DELIVER, "prepare_trace"),
    (SAVE, RECORD): (*_DELIVER, *_BEGIN),
    (SAVE, SAVE): (*_DELIVER, *_BEGIN),
    (SAVE, None): _DELIVER,
}


def actions_between(profiler: Any, pair: Pair) -> list[Callable[[], object]]:
    """What the profiler does when the second action of the pair follows the first."""
    return [_bound(profiler, name, pair) for name in TRANSITIONS.get(pair, ())]


def action_map(profiler: Any) -> dict[Pair, list[Callable[[], object]]]:
    """The table with the profiler's own methods: what torch calls `action_map`."""
    return {pair: actions_between(profiler, pair) for pair in TRANSITIONS}


def _bound(profiler: Any, name: str, pair: Pair) -> Callable[[], object]:
    if name != _WARN:
        method: Callable[[], object] = getattr(profiler, name)
        return method
    before, now = pair
    return functools.partial(
        warnings.warn, f"Incorrect schedule: {before.name} followed by {now.name if now else 'stop'}"
    )
