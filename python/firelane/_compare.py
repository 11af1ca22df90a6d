"""firelane.compare and firelane.gate: what `firelane compare` and `firelane gate` print, as dicts.

A side is a trace, several, a folder of traces or a pattern; each trace is one run.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ._trace import TraceError, View, _compare, _compare_report, _compare_view, _gate

Side: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

_ENDINGS = (".lane", ".json", ".json.gz", ".json.zst")


class Answer(dict[str, Any]):
    """The fields of `--json`; print() shows the text of the command."""

    def __init__(self, fields: Mapping[str, Any], text: str) -> None:
        super().__init__(fields)
        self._text = text

    def __str__(self) -> str:
        return self._text


class Comparison(Answer):
    """What `compare()` gives: its fields, and the comparison as a document or in a notebook."""

    def __init__(
        self, fields: Mapping[str, Any], text: str, files: tuple[list[str], list[str]], threshold: float, alpha: float
    ) -> None:
        super().__init__(fields, text)
        self._files = files
        self._judge = (threshold, alpha)

    def report(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> str | None:
        """The comparison in one document: the viewer for a path that ends in .html, Markdown for .md, and the Markdown
        itself without a path. An existing file is replaced only with force=True. The traces are read again."""
        return _compare_report(*self._files, *self._judge, None if path is None else os.fspath(path), force)

    def view(self, *, height: int = 600) -> View:
        """In a notebook: the comparison in the viewer, in the output of the cell. Elsewhere it says which command
        opens it."""
        return _compare_view(*self._files, *self._judge, height)


def _files(side: Side) -> list[str]:
    names = [side] if isinstance(side, (str, os.PathLike)) else list(side)
    out: list[str] = []
    for each in names:
        name = os.fspath(each)
        path = Path(name)
        if path.is_dir():
            found = sorted(str(file) for file in path.iterdir() if file.name.endswith(_ENDINGS))
        elif any(c in name for c in "*?[") and not path.exists():
            found = sorted(glob.glob(name))
        else:
            found = [name]
        if not found:
            raise TraceError(f"{name}: no trace here")
        out += found
    if not out:
        raise TraceError("a side without traces")
    return out


def compare(before: Side, after: Side, *, threshold: float = 0.03, alpha: float = 0.05) -> Comparison:
    """What changed between two sides, whether that is more than noise, and why.

    threshold: a difference of less than this share does not matter
    alpha: a difference with a higher p-value than this is noise
    """
    files = (_files(before), _files(after))
    fields, text = _compare(*files, threshold, alpha)
    return Comparison(json.loads(fields), text, files, threshold, alpha)


def gate(
    candidate: Side,
    *,
    baseline: Side | None = None,
    store: str | os.PathLike[str] = ".firelane/baselines",
    label: str = "main",
    limits: Mapping[str, str] | None = None,
    alpha: float = 0.05,
) -> Answer:
    """Whether new runs keep their limits: the field "status" is holds, does not hold or inconclusive.

    baseline: runs to compare with, instead of those of the store
    limits: {"step_time": "3%", "peak_memory": "20 GiB"}; default: step_time, gpu_time, peak_memory, kernel_groups
    """
    old = [] if baseline is None else _files(baseline)
    fields, text = _gate(old, os.fspath(store), label, _files(candidate), list((limits or {}).items()), alpha)
    return Answer(json.loads(fields), text)
