"""The GPU's hardware metrics as an option: `metrics=True` or a list of CUPTI's names, and how often to sample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

_PLACE = re.compile(r"(.*:)?[0-9]+|.*/.*|.*[.]sock")  # of an HTTP server, or a Unix socket
SHORTEST_MS, LONGEST_MS = 0.02, 1000.0  # as in src/format/record_options.h


def metric_options(metrics: bool | str | Sequence[str] | None, interval_ms: float = 1.0) -> dict[str, Any]:
    """The recorder's options for it. Raises ValueError for what is no interval or no name of CUPTI's."""
    if metrics is None or isinstance(metrics, bool):
        names: list[str] = []
    elif isinstance(metrics, (int, float)) or (isinstance(metrics, str) and _PLACE.fullmatch(metrics)):
        place = str(metrics).rpartition(":")[2]
        place = place if place.isdigit() else repr(place)
        raise ValueError(f"metrics: True, or CUPTI's names; a place for Prometheus is always_on(prometheus={place})")
    else:
        names = [name.strip() for name in (metrics.split(",") if isinstance(metrics, str) else metrics)]
    for name in names:
        if "__" not in name or "." not in name or "," in name:
            raise ValueError(f"metrics: {name!r} is not one of CUPTI's names, such as 'sm__cycles_active.avg'")
    is_number = isinstance(interval_ms, Real) and not isinstance(interval_ms, bool)
    if not is_number or not SHORTEST_MS <= interval_ms <= LONGEST_MS:
        raise ValueError(f"metric_interval_ms: between {SHORTEST_MS:g} and {LONGEST_MS:g}, not {interval_ms!r}")
    return {
        "metrics": bool(metrics),
        "metric_names": ",".join(names),
        "metric_interval_ms": float(interval_ms),
    }
