"""Steps of programs that neither train nor load batches: calls of a model, from outside of any other.

Generation, serving and sampling have no optimizer and often no DataLoader; what they do again and again is to call a
model. The first module that is called a second time from the same thread is taken for it, and each return of such a
call ends a step. A program that makes an optimizer is left to that: it may call its model many times a step.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from firelane._patches import Patches


class ModelCalls:
    def __init__(self, called: Callable[[], None]) -> None:
        self._called = called
        self._patches = Patches()
        self._local = threading.local()
        self._seen: set[tuple[int, int]] = set()  # modules by thread, until one is called again
        self._main: tuple[int, int] | None = None
        self._is_over = False

    def install(self) -> None:
        from torch.nn import Module

        call: Callable[..., Any] = Module.__call__
        local = self._local

        @functools.wraps(call)
        def outermost(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_over or getattr(local, "is_inside", False):
                return call(module, *args, **kwargs)
            local.is_inside = True
            try:
                result = call(module, *args, **kwargs)
            finally:
                local.is_inside = False
            self._returned((id(module), threading.get_ident()))
            return result

        self._patches.replace(Module, "__call__", outermost)

    def remove(self) -> None:
        self._is_over = True
        self._patches.remove()

    def _returned(self, module: tuple[int, int]) -> None:
        if self._main is None:
            if module in self._seen:
                self._main = module
            self._seen.add(module)
        if module == self._main:
            self._called()
