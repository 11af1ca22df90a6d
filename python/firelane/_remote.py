"""Traces of ranks that lie in object stores: any address that fsspec opens, such as s3://bucket/run/ or hdfs://...

A trace is copied to a temporary file, mapped to its part, and removed again: disk and memory hold one trace a worker,
however many ranks there are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ._trace import TraceError, _rank_part

ENDINGS = (".lane", ".json", ".json.gz", ".json.zst", ".part")
_MOST_DEPTH = 4  # folders below the one that was named, as in `firelane ranks`


def is_remote(name: str) -> bool:
    return "://" in name


def fetch_parts(names: Iterable[str], folder: str, workers: int | None = None) -> list[str]:
    """The parts of all traces that `names` (files, folders, or patterns with *) stand for, as files in `folder`."""
    files = [found for name in names for found in _files_of(name)]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return list(
            pool.map(lambda job: _part_of(job[1][0], job[1][1], Path(folder) / f"{job[0]:08}.part"), enumerate(files))
        )


def _files_of(name: str) -> list[tuple[Any, str]]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise TraceError(
            f"{name}: remote paths need fsspec: pip install fsspec, and the package of the store"
        ) from None
    try:
        system, path = url_to_fs(name)
        if "*" in path:
            return [(system, found) for found in sorted(system.glob(path))]
        if not system.isdir(path):
            if not system.exists(path):
                raise TraceError(f"{name}: no such file")
            return [(system, path)]
        found = sorted(each for each in system.find(path, maxdepth=_MOST_DEPTH) if each.endswith(ENDINGS))
    except (ImportError, OSError, ValueError) as error:  # no package for the store, no access, no such protocol
        raise TraceError(f"{name}: {error}") from error
    there = set(found)
    found = [each for each in found if not (each.endswith(".part") and each.removesuffix(".part") in there)]
    if not found:
        raise TraceError(f"{name}: no trace in this folder ({', '.join(ENDINGS)})")
    return [(system, each) for each in found]


def _part_of(system: Any, path: str, part: Path) -> str:
    address = system.unstrip_protocol(path)
    with tempfile.TemporaryDirectory(prefix="firelane-trace-") as folder:
        # Under its own name: that may say which rank it is of.
        local = Path(folder) / path.rsplit("/", 1)[-1]
        try:
            system.get_file(path, str(local))
        except OSError as error:
            raise TraceError(f"{address}: {error}") from error
        part.write_bytes(local.read_bytes() if path.endswith(".part") else _rank_part(str(local), address))
    return str(part)
