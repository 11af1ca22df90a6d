"""`export_memory_timeline`: memory of one device over time, in the forms of torch.profiler.

torch sorts sizes into categories (parameter, gradient, ...) by following tensors through its
event tree. A firelane trace does not name tensors, so all sizes stand in the last category,
"unknown". Memory that was there before the recording is known only if it is freed during it.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firelane import Trace

_PREEXISTING, _CREATE, _DESTROY = 1, 2, 4
_CATEGORY_COUNT, _UNKNOWN = 8, 7
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xpu": 12, "privateuseone": 20}


def export_memory_timeline(trace: Trace | None, path: str, device: str) -> None:
    events = _raw_events(trace, device) if trace is not None else []
    if path.endswith("raw.json.gz"):
        text = json.dumps(events)
    elif path.endswith(".html"):
        text = _html(*_coalesced(events), device)
    else:
        text = json.dumps(_coalesced(events))
    if path.endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)


def _raw_events(trace: Trace, device: str) -> list[tuple[int, int, int, int]]:
    """(time in ns, action, bytes, category), pre-existing memory first at time -1."""
    kind, _, index = device.partition(":")
    wanted = _DEVICE_TYPES.get(kind)
    if wanted is None:
        raise ValueError(f"device {device!r}: memory is recorded for {', '.join(_DEVICE_TYPES)}")
    live: dict[int, int] = {}
    before: list[tuple[int, int, int, int]] = []
    events: list[tuple[int, int, int, int]] = []
    for row in trace.memory_events:
        if row["device_type"] != wanted or (wanted and row["device"] != int(index or 0)):
            continue
        address, size = row["address"], abs(row["bytes"])
        if row["kind"] == "alloc":
            live[address] = size
            events.append((row["time_ns"], _CREATE, size, _UNKNOWN))
        elif row["kind"] == "free":
            if live.pop(address, None) is None:
                before.append((-1, _PREEXISTING, size, _UNKNOWN))
            events.append((row["time_ns"], _DESTROY, -size, _UNKNOWN))
    return before + events


def _coalesced(events: list[tuple[int, int, int, int]]) -> tuple[list[float], list[list[int]]]:
    """Times in us and, per time, a 0 and the bytes of each category: what torch's plots stack."""
    times: list[float] = []
    sizes: list[list[int]] = []
    total = 0
    first = min((t for t, *_ in events if t >= 0), default=0)
    for time_ns, _, size, _ in events:
        total += size
        time_us = (first if time_ns < 0 else time_ns) / 1000
        point = [0] * (_CATEGORY_COUNT + 1)
        point[1 + _UNKNOWN] = total
        if times and times[-1] == time_us:
            sizes[-1] = point
        else:
            times.append(time_us)
            sizes.append(point)
    return times, sizes


def _html(times: list[float], sizes: list[list[int]], device: str) -> str:
    """A step curve as SVG: no library, no script, opens anywhere."""
    totals = [sum(point) for point in sizes] or [0]
    peak = max(1, max(totals))
    begin, span = (times[0], max(1e-9, times[-1] - times[0])) if times else (0.0, 1.0)
    width, height = 1200.0, 480.0
    points = [f"0,{height:g}"]
    last = height
    for time_us, total in zip(times, totals):
        x, y = (time_us - begin) / span * width, height - total / peak * height
        points += [f"{x:.1f},{last:.1f}", f"{x:.1f},{y:.1f}"]
        last = y
    points += [f"{width:g},{last:.1f}", f"{width:g},{height:g}"]
    return f"""<!doctype html><meta charset="utf-8"><title>Memory of {device}</title>
<body style="font: 14px sans-serif">
<h1>Memory of {device}</h1>
<p>Peak {peak / 2**20:.2f} MiB, {span / 1000:.3f} ms, allocated since the recording began or freed during it.</p>
<svg viewBox="0 0 {width:g} {height:g}" width="100%" style="border: 1px solid #999">
<polygon points="{" ".join(points)}" fill="#4c78a8"/></svg></body>
"""
