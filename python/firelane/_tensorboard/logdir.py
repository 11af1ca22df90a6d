"""Finds the traces below one or more log folders and names them as people know them: run/worker, group/run/worker.

Only regular files inside a folder count. Links that lead out of it are ignored, so that whoever can open TensorBoard's
page sees nothing else on the machine.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

# As tensorboard_trace_handler names them: WORKER.TIME.pt.trace.json; the time is in ns, in ms before torch 2.2.
_TRACE = re.compile(r"(?P<worker>.+?)(?:\.(?P<time>\d{10,20}))?\.(?:pt\.trace\.json(?:\.gz)?|lane)", re.DOTALL)
_NS_DIGITS = 19
_MS_DIGITS = 13


@dataclass(frozen=True)
class Folder:
    path: str
    group: str = ""  # prefix of the names of this folder's runs


@dataclass(frozen=True)
class TraceFile:
    id: int  # depends only on the place below its folder: links stay valid across restarts
    path: str  # links resolved
    name: str
    stamp: tuple[int, int, int]  # changes when the file does


@dataclass(frozen=True)
class _Found:
    root: str
    path: str
    place: str  # path below the folder, after the folder's group
    run: str
    worker: str
    written: str  # the timestamp in the name, "" if there is none
    status: os.stat_result

    @property
    def label(self) -> str:
        return f"{self.run}/{self.worker}" if self.run else self.worker


def folders_of(logdir: str | None, logdir_spec: str | None) -> list[Folder]:
    """Parses `--logdir DIR` and `--logdir_spec GROUP:DIR,DIR` as TensorBoard does; local folders only."""
    if logdir:
        return [Folder(logdir)] if "://" not in logdir else []
    folders = []
    for part in (logdir_spec or "").split(","):
        if not part or "://" in part:
            continue
        group, colon, path = part.partition(":")
        has_group = colon != "" and not part.startswith("/")
        folders.append(Folder(path, group) if has_group else Folder(part))
    return folders


def find_traces(folders: list[Folder]) -> list[TraceFile]:
    """Sorted by run (the last written first), then by worker, then by age (the newest first)."""
    found = [
        each for folder in folders for each in _walk(os.path.realpath(os.path.expanduser(folder.path)), folder.group)
    ]
    newest: dict[str, int] = {}
    for each in found:
        newest[each.run] = max(newest.get(each.run, 0), each.status.st_mtime_ns)
    found.sort(
        key=lambda each: (-newest[each.run], each.run, _natural(each.worker), -each.status.st_mtime_ns, each.place)
    )
    labels = Counter(each.label for each in found)
    names = [each.label if labels[each.label] == 1 else f"{each.label} {_when(each)}" for each in found]
    counts = Counter(names)  # more than one if two folders without a group hold the same run
    names = [name if counts[name] == 1 else f"{name} in {each.root}" for name, each in zip(names, found, strict=True)]
    ids = _ids([(each.place, each.path) for each in found])
    return [
        TraceFile(
            ids[each.place, each.path],
            each.path,
            _printable(name),
            (each.status.st_ino, each.status.st_size, each.status.st_mtime_ns),
        )
        for each, name in zip(found, names, strict=True)
    ]


def _walk(root: str, group: str) -> Iterator[_Found]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            match = _TRACE.fullmatch(name)
            if match is None:
                continue
            place = os.path.join(group, os.path.relpath(os.path.join(folder, name), root))
            path = os.path.realpath(os.path.join(folder, name))
            try:
                status = os.stat(path)
                is_inside = os.path.commonpath([root, path]) == root
            except (OSError, ValueError):  # deleted in the meantime
                continue
            # Opening a pipe would block forever; an empty file has only just been created.
            if not is_inside or not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                continue
            run = os.path.dirname(place)
            yield _Found(root, path, place, run, match["worker"], match["time"] or "", status)


def _ids(files: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Derived from the place; in folders without a group the path breaks ties."""
    ids: dict[tuple[str, str], int] = {}
    taken: set[int] = set()
    for place, path in sorted(files):
        number = zlib.crc32(os.fsencode(place))
        while number in taken:
            number += 1
        taken.add(number)
        ids[place, path] = number
    return ids


def _when(found: _Found) -> str:
    digits = len(found.written)
    if digits not in (_NS_DIGITS, _MS_DIGITS):
        return f"({os.path.basename(found.place)})"
    ms = int(found.written) // (1_000_000 if digits == _NS_DIGITS else 1)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms // 1000)) + f".{ms % 1000:03}"


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts rank2 before rank10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"([0-9]+)", text)]


def _printable(name: str) -> str:
    """Replaces what cannot be printed or decoded: file names may hold anything."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


class Logdir:
    """Looks for traces on its own thread, because a folder may be large or remote."""

    def __init__(self, folders: list[Folder]) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._done.set()
        self._traces: list[TraceFile] = []

    def look(self, timeout_s: float) -> list[TraceFile]:
        """The current traces; the last known ones if looking takes longer than `timeout_s`."""
        if not self._folders:
            return []
        with self._lock:
            if self._done.is_set():
                self._done.clear()
                threading.Thread(target=self._find, name="firelane-logdir", daemon=True).start()
        self._done.wait(timeout_s)
        return self._traces

    def trace(self, id: int) -> TraceFile | None:
        return next((each for each in self._traces if each.id == id), None)

    def _find(self) -> None:
        try:
            self._traces = find_traces(self._folders)
        finally:
            self._done.set()
