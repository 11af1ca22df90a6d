"""What `events()` and `key_averages()` return: torch's own classes, filled from a firelane Trace.

The numbers are computed in C++ (analyze/ops/ops.h, analyze/ops/function_events.h). An event reads its fields from the
trace on first access, so that a list of a million events costs a million small objects and no more.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch.autograd.profiler_util as torch_util
from torch.autograd import DeviceType

from ._table import attribute_of, build_table

if TYPE_CHECKING:
    from firelane._trace import _FunctionEvents

    from ._event_tree import TreeNode

_DEVICE_TYPES = {
    "cuda": DeviceType.CUDA,
    "xpu": DeviceType.XPU,
    "mtia": DeviceType.MTIA,
    "hpu": DeviceType.HPU,
    "privateuse1": DeviceType.PrivateUse1,
}
_STACK_METRICS = [f"self_{d}_time_total" for d in ("cpu", "cuda", "xpu", "privateuse1")]
_IN_ONE_FRAME = str.maketrans(" ;\t\n", "____")

# Since torch 2.12, events() of a profile with stacks has the Python functions, too.
WITH_PYTHON_FUNCTIONS = "is_python_function" in inspect.signature(torch_util.FunctionEvent.__init__).parameters


# For an event: the fields that were used so far. (`__dict__` below fills in the others.)
_fields_so_far: Callable[[Any], dict[str, Any]] = next(
    vars(base)["__dict__"].__get__ for base in torch_util.FunctionEvent.__mro__ if "__dict__" in vars(base)
)


# torch 2.12 to 2.14 have metadata_json as a deprecated property, which reads a private field.
_METADATA_TEXT = "_metadata_json" if hasattr(torch_util.FunctionEvent, "metadata_json") else "metadata_json"


class FunctionEvent(torch_util.FunctionEvent):
    """One event. Fields have torch.profiler's names; `thread` is the operating system's thread id.

    A copy, or what unpickling gives, is a plain torch FunctionEvent that no longer needs the trace.
    """

    __slots__ = ("_index", "_source")

    # The same for all events.
    node_id = -1
    count = 1
    is_remote = False
    is_legacy = False
    flow_id = flow_type = flow_start = metadata = _event_metadata = None
    self_cpu_percent = total_cpu_percent = total_device_percent = -1

    if not hasattr(torch_util.FunctionEvent, "event_metadata"):  # 2.15's is a property
        event_metadata = None

    def __init__(self, source: EventSource, index: int) -> None:
        self._source = source
        self._index = index

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != _METADATA_TEXT:
            raise AttributeError(name)
        return self._source.fetch(self, self._index, name)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # vars() sees every field, whether it was used or not
        return {**_SAME_FOR_ALL, **self._source.all_fields(self, self._index)}

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _empty_event, (), self.__dict__


_SAME_FOR_ALL = {
    name: value
    for name, value in vars(FunctionEvent).items()
    if name == "_event_metadata" or (isinstance(value, (int, str, type(None))) and name[0] != "_")
}


def _empty_event() -> torch_util.FunctionEvent:
    return torch_util.FunctionEvent.__new__(torch_util.FunctionEvent)


class EventSource:
    """The events of one trace; each exists once and gets its fields on first access."""

    def __init__(
        self,
        columns: _FunctionEvents,
        use_device: str | None,
        with_overload_names: bool = False,
        with_metadata: bool = False,
        with_flops: bool = True,
    ) -> None:
        self.columns = columns
        self.with_metadata = with_metadata
        self.with_flops = with_flops
        self.use_device = use_device
        self.with_overload_names = with_overload_names
        self._device_type = _DEVICE_TYPES.get(use_device or "", DeviceType.CUDA)
        self.timeout_s: float | None = None
        self._events: list[FunctionEvent] | None = None
        self.tree: list[TreeNode] | None = None  # of _event_tree.py

    def events(self) -> list[FunctionEvent]:
        if self._events is None:
            was_on = gc.isenabled()
            gc.disable()  # a million new objects, none of them garbage
            try:
                self._events = self._events_in_time()
            finally:
                if was_on:
                    gc.enable()
        return self._events

    def _events_in_time(self) -> list[FunctionEvent]:
        """Those that can be made before the timeout (post_processing_timeout_s), the earliest ones; torch's warning."""
        count = len(self.columns)
        if self.timeout_s is None:
            return [FunctionEvent(self, index) for index in range(count)]
        end = time.perf_counter() + self.timeout_s
        events: list[FunctionEvent] = []
        while len(events) < count and time.perf_counter() < end:
            events.extend(FunctionEvent(self, index) for index in range(len(events), min(len(events) + 1000, count)))
        if len(events) < count:
            logging.getLogger("torch.autograd.profiler").warning(
                "Profiler _parse_kineto_results timed out after %.3f seconds, returning partial results with %d events",
                self.timeout_s,
                len(events),
            )
        return events

    def all_fields(self, event: FunctionEvent, index: int) -> dict[str, Any]:
        known = _fields_so_far(event)
        for name in ("time_range", "device_type", "cpu_parent", "cpu_children", "trace_name"):
            if name not in known:
                self.fetch(event, index, name)
        return known

    def fetch(self, event: FunctionEvent, index: int, name: str) -> Any:
        value: Any
        known = _fields_so_far(event)
        if name == "time_range":
            start_ns, end_ns = self.columns.times(index)
            value = known[name] = torch_util.Interval(start_ns / 1000, end_ns / 1000)
        elif name == "device_type":
            value = known[name] = self._device_type if self.columns.is_on_device(index) else DeviceType.CPU
        elif name == "cpu_parent":
            parent = self.columns.parent(index)
            value = known[name] = None if parent is None else self.events()[parent]
        elif name == "cpu_children":
            events = self.events()  # in order of time: a parent comes before its children
            value = known[name] = [events[child] for child in self.columns.children(index) if child < len(events)]
        elif "trace_name" in known:
            raise AttributeError(f"'FunctionEvent' object has no attribute '{name}'")
        else:
            known.update(self._fields_of(index))
            value = getattr(event, name)
        return value

    def _fields_of(self, index: int) -> dict[str, Any]:
        fields = self.columns.fields(index)
        fields["kernels"] = [torch_util.Kernel(n, d, ns / 1000) for n, d, ns in fields["kernels"]]
        fields["input_shapes"] = _parsed(fields["input_shapes"])
        fields["concrete_inputs"] = [_value_of(v) for v in _parsed(fields["concrete_inputs"])]
        fields["kwinputs"] = json.loads(fields["kwinputs"]) if fields["kwinputs"] else {}
        metadata = fields[_METADATA_TEXT] = self.columns.metadata_json(index) if self.with_metadata else ""
        for name in ("structured_input_shapes", "structured_input_strides", "input_dtypes"):
            fields[name] = _parsed(fields[name])
        fields["external_id"] = fields["id"]
        if self.with_metadata:
            fields["metadata"] = json.loads("{" + metadata + "}")
        fields["use_device"] = self.use_device
        if not self.with_overload_names:
            fields["overload_name"] = ""
        if not self.with_flops:
            fields["flops"] = 0
        return fields


class EventList(torch_util.EventList):
    """A list of events or of rows, with torch's methods."""

    def __init__(self, *rows: Any, **flags: Any) -> None:
        super().__init__(*rows, **flags)  # type: ignore[no-untyped-call]  # torch's

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The rows as a table, sorted in descending order by an attribute (`self_cpu_time_total`, `count`, ...)."""
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def __str__(self) -> str:
        return self.table()

    def supported_export_stacks_metrics(self) -> list[str]:
        return list(_STACK_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes `root;...;leaf <us>` lines for flame graph tools."""
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}")
        attribute = attribute_of(metric)
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, attribute)) if event.stack else 0
                if value > 0:
                    frames = (frame.translate(_IN_ONE_FRAME) for frame in reversed(event.stack))
                    file.write(f"{';'.join(frames)} {value}\n")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.table(sort_by='self_cpu_time_total', row_limit=30))}</pre>"


class RecordedEvents(EventList):
    """`events()`: filled on first access; key_averages() and totals do not need that."""

    def __init__(self, sources: list[EventSource], averages: Callable[..., EventList], **flags: Any) -> None:
        super().__init__(**flags)
        self._sources = sources
        self._averages = averages
        self._tree_built = True
        self._filled = False

    def _fill(self) -> None:
        if not self._filled:
            self._filled = True
            for source in reversed(self._sources):  # newest cycle first, as with torch's acc_events
                super().extend(source.events())

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles the events, not the trace behind them: the result is an EventList of torch's events."""
        flags = {"use_device": self._use_device, "profile_memory": self._profile_memory, "with_flops": self._with_flops}
        return _plain_list, (flags,), None, iter(self)

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self]

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        return self._averages(group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions)

    @property
    def self_cpu_time_total(self) -> float:
        return self_cpu_time_total(self.key_averages(include_python_functions=WITH_PYTHON_FUNCTIONS))

    def total_average(self) -> torch_util.FunctionEventAvg:
        return total_average(self.key_averages(include_python_functions=WITH_PYTHON_FUNCTIONS))


def _plain_list(flags: dict[str, Any]) -> EventList:
    copied = EventList(**flags)
    copied._tree_built = True
    return copied


def _fill_before(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def filled(self: RecordedEvents, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        return method(self, *args, **kwargs)

    filled.__name__ = name
    return filled


for _name in (
    "__len__ __iter__ __getitem__ __contains__ __reversed__ __setitem__ __delitem__ __repr__ "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __iadd__ __mul__ __rmul__ __imul__ "
    "append clear copy count extend index insert pop remove reverse sort"
).split():
    setattr(RecordedEvents, _name, _fill_before(_name))


def averages_of(
    rows: Iterable[dict[str, Any]], use_device: str | None, with_flops: bool = True
) -> list[torch_util.FunctionEventAvg]:
    """Rows of Trace._key_averages() as torch's FunctionEventAvg."""
    found = [_average_of(row, use_device) for row in rows]
    if not with_flops:
        for average in found:
            average.flops = 0
    return found


def _average_of(row: dict[str, Any], use_device: str | None) -> torch_util.FunctionEventAvg:
    average = torch_util.FunctionEventAvg()
    on_device = row.pop("on_device")
    for name in ("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total"):
        setattr(average, name, row.pop(name + "_ns") / 1000)
    is_top_level = row.pop("is_top_level")
    average.__dict__.update(row)
    average.input_shapes = _parsed(row["input_shapes"]) if row["input_shapes"] else ""  # type: ignore[assignment]  # as torch
    average.node_id = -1
    average.use_device = use_device
    average.device_type = _DEVICE_TYPES.get(use_device or "", DeviceType.CUDA) if on_device else DeviceType.CPU
    average.scope = 7 if row["is_user_annotation"] else 0
    average.cpu_children = []
    average.cpu_parent = None if is_top_level else _SOME_PARENT
    return average


class _SomeParent:
    """Placeholder for the parent of a row's first event; `events()` has the real ones."""

    def __repr__(self) -> str:
        return "<some parent event>"


_SOME_PARENT: Any = _SomeParent()


def merged(cycles: list[list[torch_util.FunctionEventAvg]]) -> list[torch_util.FunctionEventAvg]:
    """The rows of several cycles as if they were one: rows with equal keys are added up."""
    if len(cycles) == 1:
        return cycles[0]
    rows: dict[tuple[Any, ...], torch_util.FunctionEventAvg] = {}
    for cycle in reversed(cycles):
        for row in cycle:
            key = (
                row.key,
                row.device_type,
                row.is_user_annotation,
                row.overload_name,
                str(row.input_shapes),
                *(row.stack or ()),
            )
            if key in rows:
                rows[key].add(row)
            else:
                rows[key] = row
    return list(rows.values())


def self_cpu_time_total(rows: Iterable[torch_util.FunctionEventAvg]) -> float:
    return sum(float(row.self_cpu_time_total) for row in rows)


def total_average(rows: Iterable[torch_util.FunctionEventAvg]) -> torch_util.FunctionEventAvg:
    total = torch_util.FunctionEventAvg()
    for row in rows:
        total += row
        total.key = None
    total.key = "Total"
    return total


def _parsed(text: str) -> Any:
    return json.loads(text) if text else []


def _value_of(text: Any) -> Any:
    """Traces hold concrete inputs as text: "1", "[1, 1]", "True", "" for anything else."""
    if not isinstance(text, str):
        return text
    try:
        return ast.literal_eval(text) if text else None
    except (SyntaxError, ValueError):
        return text
