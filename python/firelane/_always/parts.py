"""What of a step is nearly free to know: garbage collections, saving, waiting for a DataLoader, a GPU out of memory."""

from __future__ import annotations

import contextlib
import functools
import gc
import time
from collections.abc import Callable
from typing import Any

from firelane._patches import Patches


class StepParts:
    """Times that are nearly free to know: garbage collections, torch.save, waiting for a DataLoader."""

    def __init__(self, on_out_of_memory: Callable[[str], None] = lambda message: None) -> None:
        self._on_out_of_memory = on_out_of_memory
        self.gc_ns = self.input_ns = self.save_ns = 0
        self._gc_began = 0
        self._patches = Patches()

    def install(self) -> None:
        import torch

        save = torch.save

        @functools.wraps(save)
        def timed_save(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter_ns()
            try:
                return save(*args, **kwargs)
            finally:
                self.save_ns += time.perf_counter_ns() - begin

        self._patches.replace(torch, "save", timed_save)
        self._watch_out_of_memory(torch.OutOfMemoryError)
        gc.callbacks.append(self._collected)
        self._patches.on_removal(lambda: gc.callbacks.remove(self._collected))

    def _watch_out_of_memory(self, error_type: Any) -> None:
        """Where the error is made, so that one that the program catches is seen, too; costs nothing before."""
        make = error_type.__init__

        def made(error: Any, *args: Any, **kwargs: Any) -> None:
            make(error, *args, **kwargs)
            with contextlib.suppress(Exception):  # the program is to catch its own error
                self._on_out_of_memory(str(args[0]) if args else "")

        self._patches.replace(error_type, "__init__", made)

    def remove(self) -> None:
        self._patches.remove()

    def take(self) -> tuple[int, int, int]:
        parts = self.gc_ns, self.input_ns, self.save_ns
        self.gc_ns = self.input_ns = self.save_ns = 0
        return parts

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = time.perf_counter_ns()
        elif self._gc_began:
            self.gc_ns += time.perf_counter_ns() - self._gc_began
