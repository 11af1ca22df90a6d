"""What happens in some steps only: checkpoints, evaluation, a data loader that starts, full garbage collections.

`firelane record` times every step but records few of them. These notes say what coincides with slow ones: the numbers
of the steps in which each kind of thing happened, as metadata of the trace. A hook runs only when such a thing
happens; none is left after remove().
"""

from __future__ import annotations

import functools
import gc
import json
import time
from collections.abc import Callable
from typing import Any

from firelane._patches import Patches

_MOST = 1000  # steps of a kind
_LONG_NS = 1_000_000  # shorter collections make no step slow


class StepEvents:
    def __init__(self, step: Callable[[], int]) -> None:
        self._step = step
        self._steps: dict[str, list[int]] = {}
        self._patches = Patches()
        self._gc_began = 0

    def install(self) -> None:
        import torch
        from torch.utils.data import DataLoader

        self._wrap(torch, "save", "checkpoint", range_name="torch.save")  # a range: ranks wait for the one that writes
        self._wrap(torch.nn.Module, "eval", "evaluation")
        self._wrap(DataLoader, "__iter__", "loader_start")
        gc.callbacks.append(self._collected)
        self._patches.on_removal(lambda: gc.callbacks.remove(self._collected))

    def remove(self) -> None:
        self._patches.remove()

    def metadata(self) -> dict[str, str]:
        return {f"steps_with_{kind}": json.dumps(steps) for kind, steps in self._steps.items()}

    def _note(self, kind: str) -> None:
        steps = self._steps.setdefault(kind, [])
        step = self._step()
        if len(steps) < _MOST and (not steps or steps[-1] != step):
            steps.append(step)

    def _wrap(self, owner: Any, name: str, kind: str, *, range_name: str | None = None) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._note(kind)
            if range_name is None:
                return original(*args, **kwargs)
            from torch.autograd.profiler import record_function

            with record_function(range_name):
                return original(*args, **kwargs)

        self._patches.replace(owner, name, noted)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if info.get("generation") != 2:
            return
        if phase == "start":
            self._gc_began = time.perf_counter_ns()
        elif self._gc_began and time.perf_counter_ns() - self._gc_began >= _LONG_NS:
            self._note("gc")
