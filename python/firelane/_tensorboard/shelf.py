"""The traces that are open at the moment: the last few that somebody chose."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from typing import Any

from firelane._trace import Viewer

from .logdir import TraceFile

# Of these the memory is taken; a trace that is looked at again after others is read again.
MAX_OPEN = 3


class Shelf:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[int, tuple[TraceFile, Viewer]] = OrderedDict()  # latest last

    def open(self, file: TraceFile, *, fresh: bool = False) -> Viewer | None:
        """Begins to load what is not open; `fresh`, also what has changed since. None when the file is not where it was."""
        dropped: list[Viewer] = []  # let go outside of the lock: a viewer that is still loading ends with that
        with self._lock:
            known = self._open.get(file.id)
            if known and fresh and known[0].stamp != file.stamp and _entry(known[1])["state"] != "loading":
                dropped.append(self._open.pop(file.id)[1])
                known = None
            if known is None:
                if os.path.realpath(file.path) != file.path:  # a link was put into its way
                    return None
                known = self._open[file.id] = (file, Viewer(file.path))
            self._open.move_to_end(file.id)
            while len(self._open) > MAX_OPEN:
                dropped.append(self._open.popitem(last=False)[1][1])
        return known[1]

    def entry(self, file: TraceFile) -> dict[str, Any]:
        """The trace as /api/traces has it."""
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
