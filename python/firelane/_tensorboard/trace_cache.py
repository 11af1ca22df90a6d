"""Keeps the most recently chosen traces open."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from typing import Any

from firelane._trace import Viewer

from .logdir import TraceFile

# Each takes the memory of a loaded trace; an evicted one is loaded again when it is chosen again.
MAX_OPEN = 3


class TraceCache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[int, tuple[TraceFile, Viewer]] = OrderedDict()  # latest last

    def open(self, file: TraceFile, *, fresh: bool = False) -> Viewer | None:
        """Starts loading a trace that is not open; with `fresh`, also one whose file has changed.

        None if a link has taken the place of the file.
        """
        dropped: list[Viewer] = []  # destroyed outside the lock: one that is still loading takes a while
        with self._lock:
            known = self._open.get(file.id)
            if known and fresh and known[0].stamp != file.stamp and _entry(known[1])["state"] != "loading":
                dropped.append(self._open.pop(file.id)[1])
                known = None
            if known is None:
                if os.path.realpath(file.path) != file.path:
                    return None
                known = self._open[file.id] = (file, Viewer(file.path))
            self._open.move_to_end(file.id)
            while len(self._open) > MAX_OPEN:
                dropped.append(self._open.popitem(last=False)[1][1])
        return known[1]

    def entry(self, file: TraceFile) -> dict[str, Any]:
        """The trace as /api/traces lists it."""
        with self._lock:
            known = self._open.get(file.id)
        if known is None:
            state = {"state": "unloaded", "bytes_done": 0, "bytes_total": file.stamp[1], "error": None}
        else:
            state = _entry(known[1])
        return {**state, "id": file.id, "name": file.name}


def _entry(viewer: Viewer) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(viewer.answer("GET", "/api/traces")[2])["traces"][0]
    return entry
