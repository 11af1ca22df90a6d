"""`prof.profiler.kineto_results`: the small part of Kineto's result object that code outside torch uses.

results.trace_start_ns()            Unix time of the trace's time 0
results.events()                    the events of prof.events(), with Kineto's method names
results.experimental_event_tree()   all slices and allocations as a forest (_event_tree.py)
results.save(path)                  the Chrome trace
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch.autograd import DeviceType

from ._event_tree import TreeNode, event_tree

if TYPE_CHECKING:
    from firelane import Trace

    from ._events import FunctionEvent
    from ._recording import Recording


def _ns(us: float) -> int:
    return round(us * 1000)


class KinetoResults:
    def __init__(self, recording: Recording, trace: Trace) -> None:
        self._recording = recording
        self._trace = trace

    def trace_start_ns(self) -> int:
        return self._trace._start_unix_ns

    def events(self) -> list[KinetoEvent]:
        return [KinetoEvent(event, self.trace_start_ns()) for event in self._recording.own_events()]

    def experimental_event_tree(self) -> list[TreeNode]:
        """The same nodes each time: code that analyses them keeps them in sets and dicts."""
        source = self._recording._event_source(self._trace)
        if source.tree is None:
            recording = self._recording
            has_device = recording.flags.use_device is not None
            source.tree = event_tree(
                self._trace, self.trace_start_ns(), has_device, recording.owners, recording.flags.collections
            )
        return source.tree

    def save(self, path: str) -> None:
        self._recording.export_chrome_trace(path)


class KinetoEvent:
    """One event, with the method names of torch._C._autograd._KinetoEvent."""

    def __init__(self, event: FunctionEvent, start_ns: int) -> None:
        self._event = event
        self._zero_ns = start_ns

    def name(self) -> str:
        return self._event.trace_name or self._event.name

    def start_ns(self) -> int:
        return self._zero_ns + _ns(self._event.time_range.start)

    def end_ns(self) -> int:
        return self._zero_ns + _ns(self._event.time_range.end)

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def device_type(self) -> DeviceType:
        return self._event.device_type

    def device_index(self) -> int:
        return self._event.device_index

    def correlation_id(self) -> int:
        return self._event.id

    def start_thread_id(self) -> int:
        return self._event.thread

    def fwd_thread_id(self) -> int | None:
        return self._event.fwd_thread

    def sequence_nr(self) -> int:
        return self._event.sequence_nr

    def scope(self) -> int:
        return self._event.scope

    def is_async(self) -> bool:
        return self._event.is_async

    def is_user_annotation(self) -> bool | None:
        return self._event.is_user_annotation

    def shapes(self) -> Sequence[Any]:
        return self._event.input_shapes

    def concrete_inputs(self) -> list[Any]:
        return self._event.concrete_inputs

    def stack(self) -> list[str]:
        return self._event.stack

    def flops(self) -> int | None:
        return self._event.flops

    def kwinputs(self) -> dict[str, Any]:
        return self._event.kwinputs

    def overload_name(self) -> str:
        return self._event.overload_name

    def device_resource_id(self) -> int:
        return self._event.device_resource_id

    def metadata_json(self) -> str:
        return str(self._event.metadata_json)

    def is_python_function(self) -> bool:
        return bool(self._event.is_python_function)

    def activity_type(self) -> str:
        return str(self._event.activity_type or "")

    def external_id(self) -> int:
        return self._event.id

    def linked_correlation_id(self) -> int:
        return int(self._event.linked_correlation_id)

    def end_thread_id(self) -> int:
        return self._event.thread

    def structured_input_shapes(self) -> Sequence[Any]:
        return list(self._event.structured_input_shapes)

    def structured_input_strides(self) -> Sequence[Any]:
        return list(self._event.structured_input_strides)

    def dtypes(self) -> Sequence[str]:
        return list(self._event.input_dtypes)

    def python_id(self) -> int:
        return int(self._event.python_id)

    def python_parent_id(self) -> int:
        return int(self._event.python_parent_id)

    def python_module_id(self) -> int:
        return int(self._event.python_module_id)
