"""firelane.ranks: what `firelane ranks` prints, as a dict; and its two halves for other engines.

part = firelane._ranks.map_trace("rank3.json.gz")       # bytes, on any machine
firelane._ranks.reduce(parts)                           # the answer, where the parts are
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable

from ._compare import Answer
from ._remote import fetch_parts, is_remote
from ._trace import TraceError, _rank_part, _ranks, _ranks_of_parts

PathLike = str | os.PathLike[str]


def ranks(
    paths: PathLike | Iterable[PathLike],
    *,
    keep_parts: bool = False,
    price_per_hour: float | None = None,
    link_gb_s: float | None = None,
    ranks_per_host: int | None = None,
) -> Answer:
    """How a distributed job scales: who was late, why, and what it cost.

    paths: a folder of traces, or the traces (or parts) of the ranks; also in a store that fsspec opens (s3://...)
    keep_parts: write TRACE.part next to each trace, and reuse existing ones
    price_per_hour: of one GPU
    link_gb_s: peak network bandwidth between hosts per GPU, one way (400 Gbit/s: 50); bandwidths are
        compared with it
    ranks_per_host: of traces that do not name their hosts, how many ranks, in order, share a machine and its clock
    """
    names = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not names:
        raise TraceError("no ranks: name a folder of traces, or the traces of the ranks")
    files = [os.fspath(name) for name in names]
    with tempfile.TemporaryDirectory(prefix="firelane-parts-") as folder:
        remote = [name for name in files if is_remote(name)]
        local = [name for name in files if not is_remote(name)]
        fields, text = _ranks(
            local + fetch_parts(remote, folder),
            keep_parts,
            _given(price_per_hour),
            _given(link_gb_s),
            ranks_per_host or 0,
        )
    return Answer(json.loads(fields), text)


def map_trace(path: PathLike) -> bytes:
    """The part of one trace: what `firelane ranks map` writes (docs/ranks-part.md)."""
    return _rank_part(os.fspath(path))


def reduce(
    parts: Iterable[bytes],
    *,
    price_per_hour: float | None = None,
    link_gb_s: float | None = None,
    ranks_per_host: int | None = None,
) -> Answer:
    """The answer from parts: what `firelane ranks reduce` prints."""
    fields, text = _ranks_of_parts(list(parts), _given(price_per_hour), _given(link_gb_s), ranks_per_host or 0)
    return Answer(json.loads(fields), text)


def _given(value: float | None) -> float:
    return -1.0 if value is None else value
