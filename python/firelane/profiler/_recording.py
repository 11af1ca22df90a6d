"""One cycle: from prepare to stop, and what can be asked of it afterwards.

`prof.profiler` is one of these. It has the methods of torch.autograd.profiler.profile that code
outside of torch uses; `kineto_results` answers what such code asks of it (_kineto_results.py).
"""

from __future__ import annotations

import atexit
import sys
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch.autograd.profiler as torch_profiler
from torch.profiler import ProfilerActivity

import firelane

from . import _backend
from ._events import EventList, EventSource, FunctionEvent, RecordedEvents, averages_of, merged, total_average
from ._kineto_results import KinetoResults

if TYPE_CHECKING:
    from firelane import Trace


@dataclass(frozen=True)
class RecordFlags:
    """What the user asked for: the recorder's options by their names (_record.OPTIONS), and what only the fronts know."""

    shapes: bool = False
    memory: bool = False
    stacks: bool = False
    modules: bool = False
    cuda_sync: bool = False
    flops: bool = False
    use_cpu: bool = True
    use_device: str | None = None  # "cuda" is the recorder's option cuda
    overload_names: bool = False  # of events, and in Chrome traces; tables can group by them anyway
    output: str = ""
    is_temporary: bool = False  # the file at `output` goes unless save() moves it


class Recording:
    def __init__(self, flags: RecordFlags, trace_id: Callable[[], str] | None = None, earlier: list[Recording] | None = None):
        self.flags = flags
        self.trace_id = trace_id() if trace_id else f"{uuid.uuid4().int:032X}"
        self._earlier = earlier or []  # cycles to be added to this one (acc_events)
        self._recorder: Any = None
        self._trace: Trace | None = None
        self._source: EventSource | None = None
        self._events: Callable[[], RecordedEvents | None] = lambda: None  # weak: the list holds us, and we a file
        self._running = False
        self._stopped = False
        self._window_start_ns = 0
        self._stats = torch_profiler._ProfilerStats()

    # -- recording ------------------------------------------------------------------------

    def prepare(self) -> None:
        """Opens the file and starts the drain; nothing is recorded yet."""
        for tell in _backend.on_start:
            tell(self)
        begin = time.perf_counter_ns()
        f = self.flags
        self._recorder = _backend.start(
            shapes=f.shapes or f.flops,
            memory=f.memory,
            stacks=f.stacks,
            modules=f.modules,
            flops=f.flops,
            cuda=f.use_device == "cuda",
            cuda_sync=f.cuda_sync,
            start_paused=True,
            output=f.output,
            keep=bool(f.output) and not f.is_temporary,
        )
        self._recorder.add_metadata("trace_id", f'"{self.trace_id}"')
        if f.overload_names:
            self._recorder.add_metadata("capture_overload_names", "1")
        self._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - begin) // 1000

    def start(self) -> None:
        if self._recorder is None or self._stopped:  # after RECORD -> WARMUP nothing is prepared
            self._stopped = False
            self.prepare()
        begin = time.perf_counter_ns()
        self._running = True
        _unfinished.add(self)
        _backend.torch_names_kernels(True)
        if self.flags.use_device == "cuda":
            self._recorder.resume_device()
        if self.flags.use_cpu:
            self._recorder.resume()
        self._window_start_ns = time.perf_counter_ns()
        self._stats.profiler_enable_call_duration_us = (self._window_start_ns - begin) // 1000

    def stop(self, timer: Any = None) -> None:
        """Ends the cycle; warns once about what could not be recorded."""
        if self._recorder is None or self._stopped:
            return
        begin = time.perf_counter_ns()
        if timer is not None:
            self._recorder.add_steps(timer)
        self._recorder.stop()
        if self._running:
            _backend.torch_names_kernels(False)
        self._running, self._stopped = False, True
        _unfinished.discard(self)
        self._stats.profiling_window_duration_sec = (begin - self._window_start_ns) / 1e9
        self._stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - begin) // 1000
        if self.losses:
            reasons = "; ".join(f"{x.reason} ({x.count} events)" if x.count else x.reason for x in self.losses)
            warnings.warn(f"firelane: the trace is incomplete: {reasons}", RuntimeWarning, stacklevel=2)

    def pause(self) -> None:
        """Nothing more is recorded; notes and timed steps are still taken until stop()."""
        if self._running:
            self._recorder.pause()
            if self.flags.use_device == "cuda":
                self._recorder.stop_device()  # so that the next steps run as without the recorder
            _backend.torch_names_kernels(False)
            self._running = False

    @property
    def is_running(self) -> bool:
        return self._running

    @property
    def is_prepared(self) -> bool:
        return self._recorder is not None and not self._stopped

    @property
    def losses(self) -> list[Any]:
        return self._recorder.losses if self._recorder is not None else []

    def add_metadata(self, key: str, json_text: str) -> bool:
        if self._recorder is None or self._stopped:
            return False
        self._recorder.add_metadata(key, json_text)
        return True

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        for activity in set(activities):
            if activity == ProfilerActivity.CPU:
                if self._running:
                    self._recorder.resume() if enable else self._recorder.pause()
            elif activity == ProfilerActivity.CUDA:
                if self._running and self.flags.use_device == "cuda":
                    self._recorder.resume_device() if enable else self._recorder.pause_device()
            else:
                warnings.warn(f"Dynamic toggle is not supported for {activity.name}; it is skipped", stacklevel=3)

    # -- results --------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The path of the .lane file; empty if nothing could be written."""
        self._require_stopped()
        return self._recorder.path

    @property
    def trace(self) -> Trace | None:
        """The recorded trace; None when nothing could be written (`losses` says why)."""
        if self._trace is None and self.path:
            begin = time.perf_counter_ns()
            self._trace = firelane.open(self.path)
            self._stats.parse_kineto_call_duration_us = (time.perf_counter_ns() - begin) // 1000
            self._stats.number_of_events = len(self._trace.host_slices)
        return self._trace

    def save(self, path: str) -> None:
        if not self.path:
            raise RuntimeError(f"nothing was recorded, so nothing can be saved: {self._why_nothing()}")
        self._recorder.save(path)

    def export_chrome_trace(self, path: str) -> None:
        trace = self.trace
        if trace is None:
            warnings.warn(f"{path} was not written because nothing was recorded: {self._why_nothing()}", RuntimeWarning)
            return
        trace.export(path, to="chrome", force=True)

    @property
    def function_events(self) -> RecordedEvents:
        events = self._events()
        if events is None:
            cycles = [cycle for cycle in (*self._earlier, self) if cycle.trace is not None]
            events = RecordedEvents(
                [cycle._event_source() for cycle in cycles],
                self.key_averages,
                use_device=self.flags.use_device,
                profile_memory=self.flags.memory,
                with_flops=self.flags.flops,
            )
            self._events = weakref.ref(events)
        return events

    def own_events(self) -> list[FunctionEvent]:
        """Events of this cycle alone."""
        return self._event_source().events()

    @property
    def kineto_results(self) -> KinetoResults | None:
        """None until there are results, as in torch."""
        return KinetoResults(self) if self._stopped and self.trace is not None else None

    def _event_source(self) -> EventSource:
        if self._source is None:
            self._source = EventSource(
                self.trace._function_events(), self.flags.use_device, self.flags.overload_names
            )
        return self._source

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        self._require_stopped()
        flags = self.flags
        rows = [
            averages_of(
                cycle.trace._key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name), flags.use_device
            )
            for cycle in (*self._earlier, self)
            if cycle.trace is not None
        ]
        return EventList(
            merged(rows) if rows else [],
            use_device=flags.use_device,
            profile_memory=flags.memory,
            with_flops=flags.flops,
        )

    def total_average(self) -> Any:
        return total_average(self.key_averages())

    @property
    def self_cpu_time_total(self) -> float:
        return sum(row.self_cpu_time_total for row in self.key_averages())

    def table(self, *args: Any, **kwargs: Any) -> str:
        return self.function_events.table(*args, **kwargs)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        self._require_stopped()
        if not self.flags.stacks:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def _why_nothing(self) -> str:
        return "; ".join(loss.reason for loss in self.losses) or "this process was forked from the recorded one"

    def _require_stopped(self) -> None:
        if not self._stopped:
            raise RuntimeError(
                "the profiler is still recording, so there are no results yet; call stop() "
                "(or leave the `with` block) first, or ask in on_trace_ready"
            )


# Recordings that have not been stopped yet.
_unfinished: weakref.WeakSet[Recording] = weakref.WeakSet()


@atexit.register
def _keep_what_was_recorded() -> None:
    """The program ends while it is being recorded: the trace is kept, and its path printed."""
    for recording in list(_unfinished):
        recording.stop()
        if recording.path:
            recording.save(recording.path)  # to its own path: now it is kept
            print(f"firelane: the program ended while recording; the trace was saved as {recording.path}", file=sys.stderr)
