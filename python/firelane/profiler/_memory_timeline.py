"""`export_memory_timeline`: memory of one device over time by category, in torch.profiler's formats.

The category of a block follows from where it was allocated and freed (docs/analyses.md, "memory"). Parameters,
gradients and optimizer states that are alive when the timeline is written are identified by their address; those
without an event were allocated before the recording. Other memory from before the recording is only known if it is
freed during it.
"""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from firelane import Trace

_PREEXISTING, _CREATE, _DESTROY = 1, 2, 4
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xpu": 12, "privateuseone": 20}
# torch's categories in the order of its files, with the colors of its plot.
_CATEGORIES = {
    "parameter": "darkgreen",
    "optimizer state": "goldenrod",
    "input": "black",
    "temporary": "mediumpurple",
    "activation": "red",
    "gradient": "mediumblue",
    "autograd detail": "royalblue",
    "unknown": "grey",
}
_PARAMETER, _OPTIMIZER_STATE, _INPUT, _TEMPORARY, _ACTIVATION, _GRADIENT, _, _UNKNOWN = range(len(_CATEGORIES))
_CATEGORY_OF = {
    "parameters": _PARAMETER,
    "optimizer state": _OPTIMIZER_STATE,
    "inputs": _INPUT,
    "temporaries": _TEMPORARY,
    "workspace": _TEMPORARY,
    "activations": _ACTIVATION,
    "gradients": _GRADIENT,
}

_RawEvent = tuple[int, int, int, int]  # Unix time in ns (-1: before the recording), action, bytes, category


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


def _raw_events(trace: Trace, device: str) -> list[_RawEvent]:
    kind, _, index = device.partition(":")
    wanted = _DEVICE_TYPES.get(kind)
    if wanted is None:
        raise ValueError(f"device {device!r}: memory is recorded for {', '.join(_DEVICE_TYPES)}")
    start = trace._start_unix_ns
    live: dict[int, int] = {}  # address -> its place in events
    seen: set[int] = set()
    before: list[_RawEvent] = []
    events: list[_RawEvent] = []
    for row, category in zip(trace.memory_events, trace._memory_categories(), strict=True):
        if row["device_type"] != wanted or (wanted and row["device"] != int(index or 0)):
            continue
        address, size, place = row["address"], abs(row["bytes"]), _CATEGORY_OF.get(category, _UNKNOWN)
        if row["kind"] == "alloc":
            live[address] = len(events)
            events.append((start + row["time_ns"], _CREATE, size, place))
        elif row["kind"] == "free":
            if live.pop(address, None) is None:
                before.append((-1, _PREEXISTING, size, place))
            events.append((start + row["time_ns"], _DESTROY, -size, place))
        seen.add(address)
    torch_device = torch.device(kind, int(index or 0)) if wanted else torch.device(kind)
    for address, (size, place) in _live_tensors(torch_device).items():
        if address in live:
            events[live[address]] = (*events[live[address]][:3], place)
        elif address not in seen:
            before.append((-1, _PREEXISTING, size, place))
    return before + events


def _live_tensors(device: torch.device) -> dict[int, tuple[int, int]]:
    """Bytes and category by address of everything that modules and optimizers hold now."""
    found: dict[int, tuple[int, int]] = {}
    for tensor, category in _held_tensors():
        try:
            if tensor.device == device and tensor.untyped_storage().nbytes() > 0:
                storage = tensor.untyped_storage()
                found.setdefault(storage.data_ptr(), (storage.nbytes(), category))
        except (RuntimeError, NotImplementedError):  # no storage of its own: sparse, fake, a subclass
            continue
    return found


def _held_tensors() -> Iterator[tuple[torch.Tensor, int]]:
    for thing in gc.get_objects():
        kind = type(thing)
        if issubclass(kind, torch.nn.Module):
            yield from _with_gradients(vars(thing).get("_parameters", {}).values())
        elif issubclass(kind, torch.optim.Optimizer):
            for group in vars(thing).get("param_groups", ()):
                yield from _with_gradients(group["params"])
            for state in vars(thing).get("state", {}).values():
                yield from ((value, _OPTIMIZER_STATE) for value in state.values() if isinstance(value, torch.Tensor))


def _with_gradients(parameters: Any) -> Iterator[tuple[torch.Tensor, int]]:
    for parameter in parameters:
        if parameter is not None:
            yield parameter, _PARAMETER
            if parameter.is_leaf and parameter.grad is not None:
                yield parameter.grad, _GRADIENT


def _coalesced(events: list[_RawEvent]) -> tuple[list[int], list[list[int]]]:
    """Times in us and, per time, a 0 and the bytes of each category: what torch's plots stack."""
    times: list[int] = []
    sizes: list[list[int]] = []
    first = min((t for t, *_ in events if t >= 0), default=0)
    point = [0] * (len(_CATEGORIES) + 1)
    for time_ns, _, size, category in events:
        point[1 + category] += size
        time_us = (first if time_ns < 0 else time_ns) // 1000
        if times and times[-1] == time_us:
            sizes[-1] = point.copy()
        else:
            times.append(time_us)
            sizes.append(point.copy())
    return times, sizes


def _html(times: list[int], sizes: list[list[int]], device: str) -> str:
    """The categories stacked, as SVG: no library, no script, opens anywhere."""
    peak = max(1, max(map(sum, sizes), default=0))
    begin, span = (times[0], max(1, times[-1] - times[0])) if times else (0, 1)
    width, height = 1200.0, 480.0
    below = [0] * len(times)
    areas, legend = [], []
    for category, (name, color) in enumerate(_CATEGORIES.items()):
        above = [low + point[1 + category] for low, point in zip(below, sizes, strict=True)]
        if above == below:
            continue
        xs = [(time_us - begin) / span * width for time_us in times]
        edge = _steps(xs, [height - y / peak * height for y in above], width)
        base = _steps(xs, [height - y / peak * height for y in below], width)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge + base[::-1])
        areas.append(f'<polygon points="{points}" fill="{color}" fill-opacity="0.7"><title>{name}</title></polygon>')
        legend.append(f'<span style="color: {color}">&#9632;</span> {name}')
        below = above
    return f"""<!doctype html><meta charset="utf-8"><title>Memory timeline: {device}</title>
<body style="font: 14px sans-serif">
<h1>Memory timeline: {device}</h1>
<p>Peak {peak / 2**20:.2f} MiB, {span / 1000:.3f} ms. {" ".join(legend)}</p>
<svg viewBox="0 0 {width:g} {height:g}" width="100%" style="border: 1px solid #999">
{"".join(areas)}</svg></body>
"""


def _steps(xs: list[float], ys: list[float], end: float) -> list[tuple[float, float]]:
    """The corners of a step curve, where each value holds until the next point."""
    return [corner for x, after, y in zip(xs, [*xs[1:], end], ys, strict=True) for corner in ((x, y), (after, y))]
