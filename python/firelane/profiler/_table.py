"""The table that `EventList.table()` prints: torch.profiler's columns, widths and number formats.

One difference: with both FLOPs and stacks torch prints the two columns under each other's header. Here each is under
its own, the source location last because its lines continue below the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    """`self_cuda_time_total` and similar names stand for attributes of the device."""
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


@dataclass(frozen=True)
class TableOptions:
    """The arguments of `EventList.table()` with torch's defaults, and what was recorded."""

    sort_by: str | None = None
    row_limit: int = 100
    max_src_column_width: int | None = 75
    max_name_column_width: int | None = 55
    max_shapes_column_width: int | None = 80
    header: str | None = None
    top_level_events_only: bool = False
    time_unit: str | None = None
    profile_memory: bool = False
    with_flops: bool = False


def build_table(events: Sequence[Any], **options: Any) -> str:
    """The table of `events` as text; `options` are those of TableOptions."""
    return _Table(list(events), TableOptions(**options)).text() if events else ""


class _Table:
    def __init__(self, events: list[Any], options: TableOptions) -> None:
        self.events, self.options = events, options
        self.use_device = events[0].use_device
        self.device = str(self.use_device).upper()
        self.has_device_time = any(e.self_device_time_total > 0 for e in events)
        if self.has_device_time and not self.use_device:
            raise RuntimeError("use_device is None, but there is device performance data.")
        if options.sort_by is not None:
            key = attribute_of(options.sort_by)
            events.sort(key=lambda e: getattr(e, key), reverse=True)
        self.cpu_total = sum(e.self_cpu_time_total for e in events)
        self.device_total = sum(e.self_device_time_total for e in events if _is_device_work(e))
        stacks = [entry for e in events for entry in e.stack or ()]
        self.has_stacks = bool(stacks)
        self.source_width = _widest(stacks, options.max_src_column_width) if stacks else 0
        self.columns = [
            *self._names(),
            *self._times(),
            *self._memory(),
            *self._calls(),
            *self._flops(),
            *self._source(),
        ]

    def _names(self) -> Iterator[_Column]:
        limit = self.options.max_name_column_width
        width = _widest([e.key for e in self.events], limit)
        yield _Column("Name", lambda e: _shortened(e.key, limit), width)
        if any(getattr(e, "overload_name", "") for e in self.events):
            yield _Column("Overload Name", lambda e: _shortened(e.overload_name, limit), width)

    def _times(self) -> Iterator[_Column]:
        def time(title: str, attribute: str) -> _Column:
            return _Column(title, lambda e: format_time(getattr(e, attribute), self.options.time_unit))

        yield _Column("Self CPU %", lambda e: format_share(e.self_cpu_time_total, self.cpu_total))
        yield time("Self CPU", "self_cpu_time_total")
        yield _Column("CPU total %", lambda e: 0 if e.is_async else format_share(e.cpu_time_total, self.cpu_total))
        yield time("CPU total", "cpu_time_total")
        yield time("CPU time avg", "cpu_time")
        if self.has_device_time:
            yield time(f"Self {self.device}", "self_device_time_total")
            yield _Column(f"Self {self.device} %", lambda e: format_share(e.self_device_time_total, self.device_total))
            yield time(f"{self.device} total", "device_time_total")
            yield time(f"{self.device} time avg", "device_time")

    def _memory(self) -> Iterator[_Column]:
        def memory(title: str, attribute: str) -> _Column:
            return _Column(title, lambda e: format_memory(getattr(e, attribute)))

        if not self.options.profile_memory:
            return
        yield memory("CPU Mem", "cpu_memory_usage")
        yield memory("Self CPU Mem", "self_cpu_memory_usage")
        if self.use_device and any(e.self_device_memory_usage > 0 for e in self.events):
            yield memory(f"{self.device} Mem", "device_memory_usage")
            yield memory(f"Self {self.device} Mem", "self_device_memory_usage")

    def _calls(self) -> Iterator[_Column]:
        yield _Column("# of Calls", lambda e: e.count)
        if any(e.node_id != -1 for e in self.events):
            yield _Column("Node ID", lambda e: e.node_id)
        if any(e.input_shapes for e in self.events):
            width = _widest([str(e.input_shapes) for e in self.events], self.options.max_shapes_column_width)
            yield _Column("Input Shapes", lambda e: str(e.input_shapes)[:width], width)

    def _flops(self) -> Iterator[_Column]:
        positive = [e.flops for e in self.events if e.flops] if self.options.with_flops else []
        if positive:
            power = int(max(0, min(math.log10(min(positive)) / 3, len(_FLOP_UNITS) - 1)))
            title = f"Total {_FLOP_UNITS[power]}"
            yield _Column(title, lambda e: f"{e.flops / 1000.0**power:8.3f}" if e.flops else "--")

    def _source(self) -> Iterator[_Column]:
        width = self.source_width
        if self.has_stacks:
            yield _Column("Source Location", lambda e: _end_of(e.stack[0], width) if e.stack else "", width, "<")

    def text(self) -> str:
        rule = "".join("-" * column.width + _GAP for column in self.columns)
        double_rule = "=" * (len(rule) - len(_GAP))
        lines = []
        if self.options.header is not None:
            lines += [double_rule, self.options.header]
        if self.options.top_level_events_only:
            lines += [double_rule, "This report only display top-level ops statistics"]
        lines += [rule, self._line([column.title for column in self.columns]), rule]
        for event in self._shown():
            lines.append(self._line([column.cell(event) for column in self.columns]))
            if self.has_stacks:
                lines += self._rest_of_stack(event)
        lines += [rule, f"Self CPU time total: {format_time(self.cpu_total, self.options.time_unit)}"]
        if self.has_device_time:
            lines.append(f"Self {self.device} time total: {format_time(self.device_total, self.options.time_unit)}")
        return "\n".join(lines) + "\n"

    def _shown(self) -> list[Any]:
        """Up to row_limit events; all of them when it is negative."""
        events = [e for e in self.events if not (self.options.top_level_events_only and e.cpu_parent is not None)]
        return events if self.options.row_limit < 0 else events[: self.options.row_limit]

    def _rest_of_stack(self, event: Any) -> Iterator[str]:
        before = [""] * (len(self.columns) - 1)
        for entry in (event.stack or ())[1:]:
            yield self._line([*before, _end_of(entry, self.source_width)])
        yield self._line([*before, ""])

    def _line(self, cells: Sequence[Any]) -> str:
        return "".join(
            f"{cell!s:{column.align}{column.width}}{_GAP}" for column, cell in zip(self.columns, cells, strict=True)
        )


def _is_device_work(event: Any) -> bool:
    if event.device_type == DeviceType.CPU:
        return bool(event.is_legacy)
    return event.device_type in _DEVICES and not event.is_user_annotation
