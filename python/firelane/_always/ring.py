"""The folder of an always-on recording, within its size limit. src/always/step_log.h describes it.

Steps are lines of CSV, appended by whole buffers so that a killed program leaves at most one torn line; files are
removed from the front. Windows are .lane files, the oldest of which goes first and leaves a summary of a few KB.
Incidents keep theirs as hard links, and are removed only when nothing else is left to remove. No method raises OSError:
a full disk stops the log, not the program, and `errors` counts it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

COLUMNS = (
    "number",
    "count",
    "start_unix_ns",
    "host_ns",
    "device_ns",
    "phase",
    "cpu_ns",
    "gc_ns",
    "input_ns",
    "save_ns",
    "rss_bytes",
    "cuda_bytes",
)
HEADER = ",".join(COLUMNS) + "\n"
_MAX_BUFFERED = 1 << 20  # bytes of lines that wait for a disk that takes none


class Ring:
    def __init__(self, folder: Path, keep_bytes: int, summarize: Callable[[Path], str] | None = None) -> None:
        self.folder = folder
        self.keep_bytes = keep_bytes
        self.errors = 0
        self.dropped_lines = 0
        self._summarize = summarize
        self._lines: list[str] = []
        self._buffered = 0
        self._file_number = 0
        self._file_bytes = 0
        # Steps may take an eighth of the room, in four files of which the oldest goes.
        self._max_file_bytes = max(4096, keep_bytes // 32)
        with self._quiet():
            (folder / "windows").mkdir(parents=True, exist_ok=True)
            (folder / "kept").mkdir(exist_ok=True)

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.errors += 1

    # -- steps ----------------------------------------------------------------------------

    def add_line(self, line: str) -> None:
        if self._buffered + len(line) > _MAX_BUFFERED:
            self.dropped_lines += 1
            return
        self._lines.append(line)
        self._buffered += len(line)

    def flush(self) -> None:
        if not self._lines:
            return
        text = "".join(self._lines)
        if self._file_number == 0 or self._file_bytes + len(text) > self._max_file_bytes:
            self._file_number += 1
            self._file_bytes = 0
            self._drop_old_logs()
        path = self.folder / f"steps-{self._file_number:06}.csv"
        data = (HEADER + text if self._file_bytes == 0 else text).encode()
        with self._quiet():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                written = os.write(descriptor, data)
                if written < len(data):  # the disk is full: the rest comes later, after the torn line
                    raise OSError("short write")
            finally:
                os.close(descriptor)
            self._file_bytes += len(data)
            self._lines.clear()
            self._buffered = 0

    def _drop_old_logs(self) -> None:
        for path in self._logs()[:-3]:
            with self._quiet():
                path.unlink()

    def _logs(self) -> list[Path]:
        return sorted(self.folder.glob("steps-*.csv"))

    # -- windows --------------------------------------------------------------------------

    def window_path(self, step: int) -> Path:
        return self.folder / "windows" / f"step-{step:09}.lane"

    def make_room(self, wanted_bytes: int) -> None:
        """Removes the oldest windows, then the oldest incidents, until `wanted_bytes` fit in."""
        used = self.used_bytes()
        windows = sorted((self.folder / "windows").glob("step-*.lane"))
        kept = sorted(path for path in (self.folder / "kept").glob("*") if path.is_dir())
        while used + wanted_bytes > self.keep_bytes and (windows or kept):
            with self._quiet():
                if windows:
                    self._retire(windows.pop(0))
                else:
                    shutil.rmtree(kept.pop(0))
            used = self.used_bytes()

    def _retire(self, window: Path) -> None:
        summary = ""
        if self._summarize is not None:
            try:
                summary = self._summarize(window)
            except Exception as error:  # a window that was cut off, say
                summary = json.dumps({"window": window.name, "error": str(error)})
        window.unlink()
        path = self.folder / "summaries.jsonl"
        if summary and (not path.exists() or path.stat().st_size + len(summary) < self.keep_bytes // 8):
            with path.open("a") as file:
                file.write(summary + "\n")

    def used_bytes(self) -> int:
        """Of all files; hard links count once."""
        seen: dict[int, int] = {}
        for root, _, names in os.walk(self.folder):
            for name in names:
                with contextlib.suppress(OSError):
                    status = os.stat(os.path.join(root, name))
                    seen[status.st_ino] = status.st_size
        return sum(seen.values())

    def newest_windows(self, count: int) -> list[Path]:
        return sorted((self.folder / "windows").glob("step-*.lane"))[-count:]

    # -- incidents ------------------------------------------------------------------------

    def keep(self, step: int, kind: str, text: str, windows: list[Path]) -> Path:
        folder = self.folder / "kept" / f"step-{step:09}-{kind}"
        with self._quiet():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "incident.txt").write_text(text)
            for window in windows:
                self.add_to(folder, window, f"before-{window.name}")
        return folder

    def add_to(self, incident: Path, window: Path, name: str) -> None:
        with self._quiet():
            if not (incident / name).exists():
                os.link(window, incident / name)

    def write(self, path: Path, text: str) -> None:
        """Whole or not at all."""
        with self._quiet():
            part = path.with_name(path.name + ".part")
            part.write_text(text)
            part.replace(path)
