"""The table that `EventList.table()` prints: torch.profiler's columns, widths and number formats.

One difference: with both FLOPs and stacks torch prints the two columns under each other's header.
Here each stands under its own, the source location last because its lines go on below the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch.autograd import DeviceType

_GAP = "  "
_WIDTH = 12
_DEVICES = {DeviceType.CUDA, DeviceType.PrivateUse1, DeviceType.MTIA, DeviceType.XPU}
_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


class _Column(NamedTuple):
    title: str
    cell: Callable[[Any], Any]
    width: int = _WIDTH
    align: str = ">"


def format_time(time_us: float, unit: str | None = None) -> str:
    if unit not in _TIME_UNITS:
        unit = "s" if time_us >= 1e6 else "ms" if time_us >= 1e3 else "us"
    return f"{time_us / _TIME_UNITS[unit]:.3f}{unit}"


def format_share(time_us: float, total_us: float) -> str:
    return f"{time_us * 100.0 / total_us:.2f}%" if total_us else "NaN"


def format_memory(size_bytes: int) -> str:
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size_bytes) >= scale:
            return f"{size_bytes / scale:.2f} {unit}"
    return f"{size_bytes} B"


def attribute_of(sort_by: str) -> str:
    """`self_cuda_time_total` and the like are read from the device's attribute."""
    for device in ("cuda", "xpu", "privateuse1"):
        sort_by = sort_by.replace(device, "device")
    return sort_by


def _shortened(text: str, limit: int | None) -> str:
    return text[: limit - 3] + "..." if limit is not None and len(text) >= limit - 3 else text


def _end_of(path: str, width: int) -> str:
    return path if len(path) <= width else ("..." + path[len(path) - width + 3 :])[-width:]


def _widest(texts: Sequence[str], limit: int | None) -> int:
    width = max(map(len, texts)) + 4
    return width if limit is None else min(width, limit)


def build_table(
    events: Sequence[Any],
    *,
    sort_by: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int | None = 75,
    max_name_column_width: int | None = 55,
    max_shapes_column_width: int | None = 80,
    header: str | None = None,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
    profile_memory: bool = False,
    with_flops: bool = False,
) -> str:
    events = list(events)
    if not events:
        return ""
    use_device = events[0].use_device
    has_device_time = any(e.self_device_time_total > 0 for e in events)
    if has_device_time and not use_device:
        raise RuntimeError("use_device is None, but there is device performance data.")
    if sort_by is not None:
        key = attribute_of(sort_by)
        events.sort(key=lambda e: getattr(e, key), reverse=True)
    cpu_total = sum(e.self_cpu_time_total for e in events)
    device_total = sum(e.self_device_time_total for e in events if _is_device_work(e))

    def time(attribute: str) -> Callable[[Any], str]:
        return lambda e: format_time(getattr(e, attribute), time_unit)

    def memory(attribute: str) -> Callable[[Any], str]:
        return lambda e: format_memory(getattr(e, attribute))

    name_width = _widest([e.key for e in events], max_name_column_width)
    columns = [_Column("Name", lambda e: _shortened(e.key, max_name_column_width), name_width)]
    if any(getattr(e, "overload_name", "") for e in events):
        columns.append(
            _Column("Overload Name", lambda e: _shortened(e.overload_name, max_name_column_width), name_width)
        )
    columns += [
        _Column("Self CPU %", lambda e: format_share(e.self_cpu_time_total, cpu_total)),
        _Column("Self CPU", time("self_cpu_time_total")),
        _Column("CPU total %", lambda e: 0 if e.is_async else format_share(e.cpu_time_total, cpu_total)),
        _Column("CPU total", time("cpu_time_total")),
        _Column("CPU time avg", time("cpu_time")),
    ]
    device = str(use_device).upper()
    if has_device_time:
        columns += [
            _Column(f"Self {device}", time("self_device_time_total")),
            _Column(f"Self {device} %", lambda e: format_share(e.self_device_time_total, device_total)),
            _Column(f"{device} total", time("device_time_total")),
            _Column(f"{device} time avg", time("device_time")),
        ]
    if profile_memory:
        columns += [_Column("CPU Mem", memory("cpu_memory_usage")), _Column("Self CPU Mem", memory("self_cpu_memory_usage"))]
        if use_device and any(e.self_device_memory_usage > 0 for e in events):
            columns += [
                _Column(f"{device} Mem", memory("device_memory_usage")),
                _Column(f"Self {device} Mem", memory("self_device_memory_usage")),
            ]
    columns.append(_Column("# of Calls", lambda e: e.count))
    if any(e.node_id != -1 for e in events):
        columns.append(_Column("Node ID", lambda e: e.node_id))
    if any(e.input_shapes for e in events):
        width = _widest([str(e.input_shapes) for e in events], max_shapes_column_width)
        columns.append(_Column("Input Shapes", lambda e: str(e.input_shapes)[:width], width))
    if with_flops and (positive := [e.flops for e in events if e.flops]):
        power = int(max(0, min(math.log10(min(positive)) / 3, len(_FLOP_UNITS) - 1)))
        columns.append(
            _Column(
                f"Total {_FLOP_UNITS[power]}", lambda e: f"{e.flops / 1000.0**power:8.3f}" if e.flops else "--"
            )
        )
    entries = [entry for e in events for entry in e.stack or ()]
    source_width = _widest(entries, max_src_column_width) if entries else 0
    if entries:
        columns.append(
            _Column("Source Location", lambda e: _end_of(e.stack[0], source_width) if e.stack else "", source_width, "<")
        )

    def line(cells: Sequence[Any]) -> str:
        return "".join(f"{cell!s:{column.align}{column.width}}{_GAP}" for column, cell in zip(columns, cells))

    rule = "".join("-" * column.width + _GAP for column in columns)
    double_rule = "=" * (len(rule) - len(_GAP))
    lines = []
    if header is not None:
        lines += [double_rule, header]
    if top_level_events_only:
        lines += [double_rule, "This report only display top-level ops statistics"]
    lines += [rule, line([column.title for column in columns]), rule]
    shown = 0
    for event in events:
        if shown == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        shown += 1
        lines.append(line([column.cell(event) for column in columns]))
        if entries:
            before = [""] * (len(columns) - 1)
            lines += [line([*before, _end_of(entry, source_width)]) for entry in (event.stack or ())[1:]]
            lines.append(line([*before, ""]))
    lines += [rule, f"Self CPU time total: {format_time(cpu_total, time_unit)}"]
    if has_device_time:
        lines.append(f"Self {device} time total: {format_time(device_total, time_unit)}")
    return "\n".join(lines) + "\n"


def _is_device_work(event: Any) -> bool:
    if event.device_type == DeviceType.CPU:
        return event.is_legacy
    return event.device_type in _DEVICES and not event.is_user_annotation
