"""What light steps need of Python: without torch's own ranges, the wait for input is one of ours, by torch's name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from firelane._patches import Patches

LIGHT_STEPS = 3  # where there is a GPU, and the user says nothing


def marked(next_batch: Callable[[Any], Any], is_light: Callable[[], bool]) -> Callable[[Any], Any]:
    """A DataLoader's __next__ that is a range while `is_light`."""

    @functools.wraps(next_batch)
    def next_marked(loader: Any) -> Any:
        if not is_light():
            return next_batch(loader)
        from firelane.profiler import _backend

        range_id = _backend.begin_range(f"enumerate(DataLoader)#{type(loader).__name__}.__next__")
        try:
            return next_batch(loader)
        finally:
            _backend.end_range(range_id)

    return next_marked


def mark_input(patches: Patches, is_light: Callable[[], bool]) -> None:
    import torch.utils.data.dataloader as dataloader

    iterator: Any = dataloader._BaseDataLoaderIter
    patches.replace(iterator, "__next__", marked(iterator.__next__, is_light))
