"""One recording cycle, from prepare to stop, and its results.

`prof.profiler` is one of these. It has those methods of torch.autograd.profiler.profile that code outside torch uses,
and `kineto_results` (_kineto_results.py) for code that goes further down.
"""

from __future__ import annotations

import atexit
import json
import platform
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
from firelane import _trace
from firelane._light import mark_input
from firelane._patches import Patches

from . import _backend, _ranks
from ._commit import commit_of
from ._events import (
    WITH_PYTHON_FUNCTIONS,
    EventList,
    EventSource,
    FunctionEvent,
    RecordedEvents,
    averages_of,
    merged,
    self_cpu_time_total,
    total_average,
)
from ._kineto_results import KinetoResults
from ._surroundings import CompileCounts, CpuUse, environment
from ._tensors import describe

if TYPE_CHECKING:
    from torch.autograd.profiler_util import FunctionEventAvg

    from firelane import Trace
    from firelane._record import Loss, Recorder, StepTimer
    from firelane._trace import StackRecorder

    from ._tree_fields import Owner


@dataclass(frozen=True)
class RecordFlags:
    """What the user asked for: the recorder's options by name (_record.OPTIONS), and what only the fronts know."""

    shapes: bool = False
    memory: bool = False
    stacks: bool = False
    modules: bool = False
    lines: bool = False
    cuda_sync: bool = False
    metrics: bool = False
    metric_names: str = ""  # by commas; empty: the default set
    metric_interval_ms: float = 1.0
    flops: bool = False
    use_cpu: bool = True
    without: tuple[str, ...] = ()  # parts that the activities leave out
    use_device: str | None = None  # "cuda" is the recorder's option cuda
    overload_names: bool = False  # in events and Chrome traces; tables can group by them anyway
    event_metadata: bool = False  # FunctionEvent.metadata_json holds the args of the Chrome trace
    call_stacks: bool = False  # Chrome traces have each event's Python frames as one text, too
    collections: bool = True  # Chrome traces and event trees have garbage collections
    results_timeout_s: float | None = None  # events() has what can be had in this time
    adjust_steps: bool = False  # in Chrome traces, steps begin where the functions that called step() have returned
    front: str = "firelane.profiler"  # what the user called; advice names its options
    light: bool = False  # light steps first; begin_full() ends them
    sample_rate: float = 0  # samples per second at the stacks of all threads; 0: none
    output: str = ""
    is_temporary: bool = False  # the file at `output` is deleted unless save() moves it
    follow_tensors: bool = True  # for few steps: 200 bytes of each tensor stay until the end

    @property
    def is_drop_in(self) -> bool:
        """Whether exports follow torch's rules to the letter."""
        return self.front == "firelane.profiler"

    @property
    def shows_flops(self) -> bool:
        """Whether rows and events say FLOPs: torch's only for who asks, though shapes are enough to know them."""
        return self.flops or not self.is_drop_in

    @property
    def tensors(self) -> bool:
        """Whether ops say which tensors their inputs are: for the event tree, and for what rounds of a loop need."""
        return self.shapes and self.memory and self.follow_tensors

    @property
    def owners(self) -> bool:
        """Whether modules and optimizers say which tensors they hold."""
        return self.stacks and self.memory


class Recording:
    is_automatic = False  # `firelane record` made it, not the program
    warns_of_losses = True  # when it is stopped
    _ids_used = 0  # by earlier recordings: ids of events are unique in a process

    def __init__(
        self, flags: RecordFlags, trace_id: Callable[[], str] | None = None, earlier: list[Recording] | None = None
    ):
        self.flags = flags
        self.trace_id = trace_id() if trace_id else f"{uuid.uuid4().int:032X}"
        self._earlier = earlier or []  # cycles to add to this one (acc_events)
        self._recorder: Recorder | None = None
        self._trace: Trace | None = None
        self._source: EventSource | None = None
        self._events: Callable[[], RecordedEvents | None] = lambda: (
            None
        )  # weak: the list keeps this object alive, and with it the file
        self._running = False
        self._is_light = False  # as long as begin_full() was not called; prepare() starts again
        self._sampler: StackRecorder | None = None
        self._has_no_stacks = False  # they cannot be read; prepare() tries again
        self._patches = Patches()  # while light
        self._appears_on = False
        self._stopped = False
        self._has_rank = False
        self._window_start_ns = 0
        self._surroundings: tuple[CpuUse | CompileCounts, ...] = ()
        self._stats = torch_profiler._ProfilerStats()
        self.owners: list[tuple[str | None, Owner]] = []  # what holds tensors, once stopped

    # -- recording ------------------------------------------------------------------------

    def prepare(self) -> None:
        """Opens the file and starts the drain; nothing is recorded yet."""
        for notify in _backend.on_start:
            notify(self)
        begin = time.perf_counter_ns()
        f = self.flags
        self._is_light = f.light
        _backend.describe_owners(describe if f.owners else None)
        recorder = self._recorder = _backend.start(
            shapes=f.shapes or f.flops,
            tensors=f.tensors,
            memory=f.memory,
            stacks=f.stacks,
            modules=f.modules,
            lines=f.lines,
            flops=f.flops,
            cuda=f.use_device == "cuda",
            cuda_sync=f.cuda_sync,
            metrics=f.metrics,
            metric_names=f.metric_names,
            metric_interval_ms=f.metric_interval_ms,
            without=f.without,
            start_paused=True,
            start_light=f.light,
            output=f.output,
            keep=bool(f.output) and not f.is_temporary,
        )
        recorder.add_metadata("trace_id", f'"{self.trace_id}"')
        recorder.add_metadata("front", json.dumps(f.front))
        recorder.add_metadata("python", json.dumps(platform.python_version()))
        if commit := commit_of():
            recorder.add_metadata("commit", json.dumps(commit))
        for name, text in environment().items():
            recorder.add_metadata(name, text)
        self._surroundings = (CpuUse(), CompileCounts())
        if f.overload_names:
            recorder.add_metadata("capture_overload_names", "1")
        if f.call_stacks:
            recorder.add_metadata("call_stacks", "1")
        if f.adjust_steps:
            recorder.add_metadata("adjust_profiler_step", "1")
        recorder.add_metadata("first_op_id", str(Recording._ids_used))
        self._has_no_stacks = False
        self._prepare_samples()
        self._stats.profiler_prepare_call_duration_us = (time.perf_counter_ns() - begin) // 1000

    def start(self) -> None:
        if self._recorder is None or self._stopped:  # after RECORD -> WARMUP nothing is prepared
            self._stopped = False
            self.prepare()
        assert self._recorder is not None
        begin = time.perf_counter_ns()
        if not self._has_rank:
            self._has_rank = True
            for name, text in _ranks.metadata().items():
                self._recorder.add_metadata(name, text)
        if self._sampler is None:
            self._prepare_samples()  # again, after a pause; it takes time that must not be recorded
        self._running = True
        if self._is_light and not self.is_automatic:  # `firelane record` has its own
            mark_input(self._patches, lambda: self.is_light)
        _unfinished.add(self)
        self._appear_on(not self._is_light)
        if self.flags.use_device == "cuda":
            self._recorder.resume_device()
        if self.flags.use_cpu:
            self._recorder.resume()
        if self._sampler is not None:
            self._sampler.start()
        self._window_start_ns = time.perf_counter_ns()
        self._stats.profiler_enable_call_duration_us = (self._window_start_ns - begin) // 1000

    def stop(self, timer: StepTimer | None = None) -> None:
        """Ends the cycle; warns, once, about what could not be recorded."""
        if self._recorder is None or self._stopped:
            return
        begin = time.perf_counter_ns()
        if self._sampler is not None:
            self._close_window()
            self._end_samples()
        elif self.flags.stacks and self._running:
            self._recorder.pause()  # what follows reads a file of each process, in Python
        if timer is not None:
            self._recorder.add_steps(timer)
        for surroundings in self._surroundings:
            for name, text in surroundings.metadata().items():
                self._recorder.add_metadata(name, text)
        self._recorder.stop()
        self._patches.remove()
        self._appear_on(False)
        if self.flags.owners:
            self.owners = _backend.take_owners()
        Recording._ids_used += self._recorder.status().event_count
        self._running, self._stopped = False, True
        _unfinished.discard(self)
        self._stats.profiling_window_duration_sec = (begin - self._window_start_ns) / 1e9
        self._stats.profiler_disable_call_duration_us = (time.perf_counter_ns() - begin) // 1000
        if self.losses and self.warns_of_losses:
            reasons = "; ".join(f"{x.reason} ({x.count} events)" if x.count else x.reason for x in self.losses)
            warnings.warn(f"firelane: the trace is incomplete: {reasons}", RuntimeWarning, stacklevel=2)

    def pause(self) -> None:
        """Stops recording events; metadata and step times are still accepted until stop()."""
        if self._recorder is not None and self._running:
            self._close_window()
            self._end_samples()
            self._appear_on(False)
            self._running = False

    def _close_window(self) -> None:
        """Nothing is recorded from now on: what is still to be written does not count."""
        assert self._recorder is not None
        self._recorder.pause()
        if self.flags.use_device == "cuda":
            self._recorder.stop_device()  # the steps that follow must run as if unprofiled

    def begin_full(self) -> None:
        """Ends the light steps: from now on everything is recorded."""
        if self._recorder is not None and self._running and self._is_light:
            self._is_light = False
            self._patches.remove()
            self._recorder.begin_full()
            self._appear_on(True)

    def _prepare_samples(self) -> None:
        """Never raises: a program whose stacks cannot be read is recorded without."""
        self._sampler = None
        if not self.flags.sample_rate or self._has_no_stacks:
            return
        try:
            self._sampler = _trace.record_stacks(self.flags.sample_rate)
        except Exception as error:
            assert self._recorder is not None
            self._has_no_stacks = True
            self._recorder.add_loss(f"stacks could not be sampled: {error}")

    def _end_samples(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is None or self._recorder is None:
            return
        texts, losses = sampler.stop()
        for text in texts:
            self._recorder.add_metadata("stack_samples", text)
        for reason, count in losses:
            self._recorder.add_loss(reason, count)

    def _appear_on(self, on: bool) -> None:
        if on != self._appears_on:
            self._appears_on = on
            f = self.flags
            _backend.appear_on(on, (f.shapes or f.flops) and "ops" not in f.without)

    @property
    def is_light(self) -> bool:
        return self._running and self._is_light

    @property
    def is_running(self) -> bool:
        return self._running

    @property
    def is_prepared(self) -> bool:
        return self._recorder is not None and not self._stopped

    @property
    def losses(self) -> list[Loss]:
        return self._recorder.losses if self._recorder is not None else []

    def add_metadata(self, key: str, json_text: str) -> bool:
        if self._recorder is None or self._stopped:
            return False
        self._recorder.add_metadata(key, json_text)
        return True

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        recorder = self._recorder if self._running else None
        for activity in set(activities):
            if activity == ProfilerActivity.CPU:
                if recorder is not None:
                    recorder.resume() if enable else recorder.pause()
            elif activity == ProfilerActivity.CUDA:
                if recorder is not None and self.flags.use_device == "cuda":
                    recorder.resume_device() if enable else recorder.pause_device()
            else:
                warnings.warn(f"Dynamic toggle is not supported for {activity.name}; it is skipped", stacklevel=3)

    # -- results --------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Where the .lane file is; empty if nothing could be written."""
        return self._stopped_recorder().path

    @property
    def trace(self) -> Trace | None:
        """The recorded trace; None if nothing could be written (`losses` says why)."""
        if self._trace is None and self.path:
            begin = time.perf_counter_ns()
            self._trace = firelane.open(self.path)
            self._stats.parse_kineto_call_duration_us = (time.perf_counter_ns() - begin) // 1000
            self._stats.number_of_events = len(self._trace.host_slices)
        return self._trace

    def save(self, path: str) -> None:
        recorder = self._stopped_recorder()
        if not recorder.path:
            raise RuntimeError(f"nothing was recorded, so nothing can be saved: {self._why_nothing()}")
        recorder.save(path)
        self._trace = None  # it names the file that was moved

    def export_chrome_trace(self, path: str) -> None:
        trace = self.trace
        if trace is None:
            warnings.warn(
                f"{path} was not written because nothing was recorded: {self._why_nothing()}",
                RuntimeWarning,
                stacklevel=3,
            )
            return
        if self.flags.is_drop_in:
            trace._export_as_torch(path, collections=self.flags.collections)
        else:
            trace.export(path, to="chrome", force=True)

    @property
    def function_events(self) -> RecordedEvents:
        events = self._events()
        if events is None:
            events = RecordedEvents(
                [cycle._event_source(trace) for cycle in (*self._earlier, self) if (trace := cycle.trace) is not None],
                self.key_averages,
                use_device=self.flags.use_device,
                profile_memory=self.flags.memory,
                with_flops=self.flags.flops,
            )
            self._events = weakref.ref(events)
            if self.flags.results_timeout_s is not None:
                events._fill()  # now, so that its warning comes from here
        return events

    def own_events(self) -> list[FunctionEvent]:
        """Events of this cycle only; none if nothing could be written."""
        trace = self.trace
        return [] if trace is None else self._event_source(trace).events()

    @property
    def kineto_results(self) -> KinetoResults | None:
        """None until there are results, as in torch."""
        trace = self.trace if self._stopped else None
        return None if trace is None else KinetoResults(self, trace)

    def _event_source(self, trace: Trace) -> EventSource:
        if self._source is None:
            begin = time.perf_counter_ns()
            f = self.flags
            columns = trace._function_events(python_functions=f.stacks and WITH_PYTHON_FUNCTIONS)
            self._source = EventSource(columns, f.use_device, f.overload_names, f.event_metadata, f.shows_flops)
            self._source.timeout_s = f.results_timeout_s
            duration_us = max(1, (time.perf_counter_ns() - begin) // 1000)
            self._stats.function_events_build_tree_call_duration_us = duration_us
        return self._source

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        self._require_stopped()
        flags = self.flags
        grouping = (group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)
        rows = [
            averages_of(cycle.trace._key_averages(*grouping), flags.use_device, flags.shows_flops)
            for cycle in (*self._earlier, self)
            if cycle.trace is not None
        ]
        return EventList(
            merged(rows) if rows else [],
            use_device=flags.use_device,
            profile_memory=flags.memory,
            with_flops=flags.flops,
        )

    def total_average(self) -> FunctionEventAvg:
        return total_average(self.key_averages())

    @property
    def self_cpu_time_total(self) -> float:
        return self_cpu_time_total(self.key_averages())

    def table(self, *args: Any, **kwargs: Any) -> str:
        return self.function_events.table(*args, **kwargs)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        self._require_stopped()
        if not self.flags.stacks:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def _why_nothing(self) -> str:
        return "; ".join(loss.reason for loss in self.losses) or "this process was forked from the recorded one"

    def _stopped_recorder(self) -> Recorder:
        self._require_stopped()
        assert self._recorder is not None  # only a recorder is stopped
        return self._recorder

    def _require_stopped(self) -> None:
        if not self._stopped:
            raise RuntimeError(
                "the profiler is still recording, so there are no results yet; call stop() "
                "(or leave the `with` block) first, or ask in on_trace_ready"
            )


# Recordings that have not been stopped yet.
_unfinished: weakref.WeakSet[Recording] = weakref.WeakSet()


@atexit.register
def _save_unfinished() -> None:
    """The program exits while recording: keeps the trace and says where it is."""
    for recording in list(_unfinished):
        recording.stop()
        if recording.path:
            recording.save(recording.path)  # in place, to keep it
            print(f"firelane: the program exited while recording; the trace is in {recording.path}", file=sys.stderr)
