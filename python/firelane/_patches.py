"""Attributes of torch's classes and modules that are replaced while something is watched, and put back afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NOTHING = object()


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, ours: Any) -> None:
        before = vars(owner).get(name, _NOTHING)  # not getattr(): a staticmethod has to stay one

        def restore() -> None:
            if vars(owner).get(name) is not ours:
                return  # somebody has wrapped it since, and calls the original through ours
            if before is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, ours)
        self._undo.append(restore)

    def on_removal(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def remove(self) -> None:
        """In the opposite order. Calling it twice is fine."""
        while self._undo:
            self._undo.pop()()
