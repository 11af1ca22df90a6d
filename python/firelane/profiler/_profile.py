"""`profile`: torch.profiler's context manager over firelane's recorder.

Where it differs from torch.profiler, and why, stands in docs/profiler.md.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerAction, ProfilerActivity, supported_activities

from . import _backend
from ._events import EventList, RecordedEvents
from ._exports import Exports
from ._memory_timeline import export_memory_timeline
from ._recording import RecordFlags, Recording
from ._schedule import Schedule, always_record
from ._transitions import action_map, actions_between

if TYPE_CHECKING:
    from firelane import Table, Trace

_DEVICES = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")  # the first one asked for is use_device


class _KinetoProfile:
    """One profiler without a schedule: start() and stop() bound one recording. Base of `profile`."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.activities = set(activities) if activities else supported_activities()
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: Recording | None = None  # the cycle at hand; setting it to None drops its data
        self.has_cudagraphs = False
        self.mem_tl: Any = None
        self.use_device = _device_of(self.activities)
        self.preset_metadata: dict[str, str] = {}
        self._finished: Recording | None = None  # the last cycle that was stopped
        self._kept: list[Recording] = []  # with acc_events: those before it
        self._timer = _backend.step_timer(on_device=self.use_device == "cuda")
        self._exports = Exports()
        self._in_step = False

    # -- recording ------------------------------------------------------------------------

    def start(self) -> None:
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        self.stop_trace()
        self.wait_for_exports()

    def prepare_trace(self) -> None:
        flags = RecordFlags(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device=self.use_device if _is_available(self.use_device) else None,
            cuda_sync=_asked_for(self.experimental_config, "enable_cuda_sync_events"),
            overload_names=_asked_for(self.experimental_config, "capture_overload_names"),
            output=self._output(),
        )
        if self.acc_events and self._finished is not None and self._finished not in self._kept:
            self._kept.append(self._finished)
        recording = Recording(flags, self.custom_trace_id_callback, list(self._kept))
        recording.prepare()
        self.profiler = recording

    def start_trace(self) -> None:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        self.profiler.start()
        self._timer.raise_phase("recorded")
        for flag in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, flag):
                self.add_metadata_json(flag, "1")
        if distributed := self._get_distributed_info():
            self.add_metadata_json("distributedInfo", json.dumps(distributed, default=_plain))
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def stop_trace(self) -> None:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        was_recording = self.profiler.is_running
        self.profiler.stop(self._timer)
        if was_recording:
            self._finished = self.profiler

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Turns the recording of CPU ops off and on again inside the recorded window."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # -- results --------------------------------------------------------------------------

    def _results(self, wanted_for: str) -> Recording:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {wanted_for}")
        if self.profiler.is_running or self._finished is None:
            self.profiler._require_stopped()
        return self._finished or self.profiler

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Time and memory per operator, of the last cycle (of all cycles with acc_events)."""
        results = self._results("getting key averages")
        return results.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def events(self) -> RecordedEvents:
        """Every event of the last cycle (of all cycles with acc_events)."""
        return self._results("accessing events").function_events

    def export_chrome_trace(self, path: str, use_python_export: bool = False, *, wait: bool = True) -> None:
        """Writes the last cycle as Chrome JSON, gzip'ed when `path` ends in .gz; as often as wanted.

        The file is there when this returns. With wait=False inside `on_trace_ready` a thread writes it
        while training goes on: wait_for_exports() returns when it is there, and stop() waits too.
        """
        results = self._results("exporting chrome trace")
        if self._in_step and not wait:
            self._exports.submit(lambda: results.export_chrome_trace(path))
        else:
            results.export_chrome_trace(path)

    def wait_for_exports(self) -> None:
        """Returns when all exports are written; raises the first error of those that failed, once."""
        self._exports.wait()

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes `root;...;leaf <us>` lines, as flame graph tools read them. Needs with_stack=True."""
        self._results("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Memory over time by category (parameter, gradient, activation, ...): .html a chart, .json and
        .json.gz its points, .raw.json.gz every event. docs/profiler.md says how categories are found.
        """
        missing = [f"{f}=True" for f in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, f)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        if device is None:
            device = f"{self.use_device}:0" if _is_available(self.use_device) and self.use_device else "cpu"
        export_memory_timeline(self._results("exporting the memory timeline").trace, path, device)

    @property
    def trace(self) -> Trace | None:
        """The last cycle as a firelane.Trace; None when nothing could be recorded (see `losses`)."""
        return self._results("opening the trace").trace

    def diagnose(self) -> Table | None:
        """What limits the program and what to change, of the last cycle: `print(prof.diagnose())`.

        One row per finding, as trace.diagnose() gives them; None when nothing could be recorded. Steps outside
        of the recorded cycle (a schedule's wait) tell what a step takes when nobody records it.
        """
        trace = self._results("diagnosing").trace
        return None if trace is None else trace.diagnose()

    @property
    def losses(self) -> list[Any]:
        """What is not in the trace and why; empty when nothing is missing."""
        recording = self._finished or self.profiler
        return recording.losses if recording is not None else []

    def save(self, path: str) -> None:
        """Keeps the last cycle as a .lane file: the form that `firelane` opens fastest."""
        results = self._results("saving")
        self.wait_for_exports()
        results.save(path)

    def _repr_html_(self) -> str:
        if self._finished is None:
            return "<pre>firelane.profiler.profile: nothing recorded yet</pre>"
        return self.key_averages()._repr_html_()

    # -- notes ----------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """A text for the trace file; only while a cycle is prepared or recorded."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON text for the trace file; only while a cycle is prepared or recorded."""
        json.loads(value)  # a broken value would break the whole file for its readers
        is_taken = self.profiler is not None and self.profiler.add_metadata(key, value)
        if not is_taken and not self._is_waiting():  # Lightning adds its own after each step, whatever the schedule says
            warnings.warn(
                f"metadata {key!r} is dropped, for no recording is on; preset_metadata_json() keeps it", stacklevel=2
            )

    def _is_waiting(self) -> bool:
        """Between cycles of a schedule: notes of the program are for no trace, as in torch."""
        return False

    def preset_metadata_json(self, key: str, value: str) -> None:
        """A JSON text for every cycle from now on."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        return None if self.profiler is None else self.profiler.trace_id

    def _stats(self) -> Any:
        return None if self.profiler is None else self.profiler._stats

    def _get_distributed_info(self) -> dict[str, Any] | None:
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            return None
        backend = dist.get_backend()
        info = {
            "backend": backend,
            "rank": dist.get_rank(),
            "world_size": dist.get_world_size(),
            "pg_count": dist.get_pg_count(),
            "pg_config": dist.distributed_c10d._get_all_pg_configs(),
        }
        if backend == "nccl":
            info["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
        return info

    def _output(self) -> str:
        """Where the recorder's file lies meanwhile; empty: FIRELANE_DIR, else the temporary folder."""
        return ""


def _observer_from_environment() -> ExecutionTraceObserver | None:
    """The observer that ENABLE_PYTORCH_EXECUTION_TRACE asks for. Torch before 2.7 does not know it."""
    build = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", None)
    return build() if build is not None else None


class profile(_KinetoProfile):
    """Records what a PyTorch program does; a drop-in for torch.profiler.profile.

        with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=handler) as prof:
            for batch in loader:
                train(batch)
                prof.step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        chosen = set(activities) if activities else supported_activities()
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            chosen = chosen | {ProfilerActivity.CUDA} if use_cuda else chosen - {ProfilerActivity.CUDA}
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=chosen,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer or _observer_from_environment(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.schedule = schedule or always_record
        self.record_steps = schedule is not None  # ProfilerStep#N ranges
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self._action_at(0)
        self.step_rec_fn: Any = None
        self._is_started = False

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        try:
            self._stop()
            self._exports.wait(warn_only=exc_type is not None)  # the program's own error comes first
        finally:
            if self.execution_trace_observer:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._is_started = True
        self._begin_step()

    def stop(self) -> None:
        """Ends the recording and waits for exports. A second stop does nothing."""
        self._stop()
        self.wait_for_exports()

    def _stop(self) -> None:
        if not self._is_started and self._finished is not None:
            return
        self._is_started = False
        self._cut_off_step()
        self._transit_action(self.current_action, None)
        self._timer = _backend.step_timer(on_device=self.use_device == "cuda")

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before, now = self.current_action, self._action_at(self.step_num + 1)
        self.step_num += 1
        self.current_action = now
        self._in_step = True
        try:
            self._transit_action(before, now)
        finally:
            self._in_step = False
        self._begin_step()

    def _begin_step(self) -> None:
        is_recorded = self.profiler is not None and self.profiler.is_running
        is_warm = self.step_num > 0 and self.current_action == ProfilerAction.NONE  # the first step is cold
        self._timer.step(self.step_num, "recorded" if is_recorded else "unrecorded" if is_warm else "warmup")
        if self.record_steps:
            self.step_rec_fn = _StepRange(f"ProfilerStep#{self.step_num}", self.execution_trace_observer is not None)

    def _end_step(self) -> None:
        self._end_step_range()
        self._timer.finish()

    def _cut_off_step(self) -> None:
        """The recording ends inside of a step: it is not timed, and its range, kept as torch does, is no step."""
        if self.step_rec_fn is not None and self.profiler is not None and self.profiler.is_running:
            self.profiler.add_metadata("unfinished_step", str(self.step_num))
        self._end_step_range()

    def _end_step_range(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.close()
            self.step_rec_fn = None

    def _is_waiting(self) -> bool:
        return self._is_started and self.current_action == ProfilerAction.NONE

    def _action_at(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if getattr(action, "name", "") == "DEVICE_STOPPED":
            raise ValueError("a schedule may not return ProfilerAction.DEVICE_STOPPED")
        return action

    def _trace_ready(self) -> None:
        if self.on_trace_ready:
            self.on_trace_ready(self)

    @property
    def action_map(self) -> dict[Any, list[Callable[[], object]]]:
        return action_map(self)

    def _transit_action(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        complete = self._finished
        for action in actions_between(self, (before, now)):
            action()
        if before == ProfilerAction.WARMUP and self._finished is not complete and complete is not None:
            self._finished = complete  # a warm-up that was broken off is no cycle


class _StepRange:
    """`ProfilerStep#N`: seen by this recorder alone, which is cheap, or by every observer of torch."""

    def __init__(self, name: str, for_all_observers: bool) -> None:
        self._range = torch.profiler.record_function(name) if for_all_observers else None
        self._id = 0 if self._range is not None else _backend.begin_range(name)
        if self._range is not None:
            self._range.__enter__()

    def close(self) -> None:
        if self._range is not None:
            self._range.__exit__(None, None, None)
        else:
            _backend.end_range(self._id)


def _device_of(activities: set[ProfilerActivity]) -> str | None:
    for name in _DEVICES:
        if getattr(ProfilerActivity, name, None) in activities:
            return torch._C._get_privateuse1_backend_name() if name == "PrivateUse1" else name.lower()
    return None


def _is_available(device: str | None) -> bool:
    if device is None:
        return False
    module = getattr(torch, device, None)
    if module is not None and module.is_available():
        return True
    warnings.warn(f"{device.upper()} is not available, disabling {device.upper()} profiling", stacklevel=4)
    return False


def _asked_for(config: Any, flag: str) -> bool:
    """A flag of torch's _ExperimentalConfig, which gives its fields only when pickled: in the order of its arguments."""
    if config is None or hasattr(config, flag):
        return bool(getattr(config, flag, False))
    names = re.findall(r"[(,] ?(\w+): ", (type(config).__init__.__doc__ or "").split("->")[0])[1:]  # without self
    state = config.__getstate__()
    return len(names) == len(state) and flag in names and bool(state[names.index(flag)])


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON value")
