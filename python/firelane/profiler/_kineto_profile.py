"""`_KinetoProfile`: torch.profiler's profiler without a schedule, over firelane's recorder.

The results of one recording (tables, events, exports, the trace) are here; `profile` (_profile.py) adds steps and a
schedule.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ProfilerActivity
from torch.profiler._memory_profiler import MemoryProfile

from . import _activities, _backend, _graph_annotations, _ranks
from ._events import EventList, RecordedEvents
from ._exports import Exports
from ._memory_timeline import export_memory_timeline
from ._recording import RecordFlags, Recording

if TYPE_CHECKING:
    from firelane import Table, Trace

_WITH_MODULES_IS_DEPRECATED = (  # torch's words; ours records the modules of eager models all the same
    "with_modules is deprecated and will be removed in a future release. It only collects data for TorchScript models, "
    "which are themselves deprecated, and does nothing in eager mode. Use with_stack=True, which records nn.Module "
    "events for eager models."
)
_ADJUST_IS_DEPRECATED = (
    "adjust_profiler_step is deprecated: torch ignores it, and will remove it. firelane still moves the steps."
)
_TRACE_ONLY_WITHOUT_STACKS = (
    "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). "
    "Disabling trace_only."
)
_WARNS_OF_ADJUSTING = torch.torch_version.TorchVersion(torch.__version__) >= "2.15"  # as torch from then on
_DEVICES = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")  # the first one asked for is use_device


class _KinetoProfile:
    """A profiler without a schedule: start() and stop() delimit one recording. Base class of `profile`."""

    _front = "firelane.profiler"

    def __init__(
        self,
        *,
        activities: _activities.Activities | None = None,
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
        self.activities, self.activity_configs = _activities.parse_activities(activities)
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        if with_stack and _asked_for(experimental_config, "trace_only"):
            warnings.warn(_TRACE_ONLY_WITHOUT_STACKS, stacklevel=2)
            experimental_config = copy.copy(experimental_config)
            experimental_config.trace_only = False
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: Recording | None = None  # the current cycle; setting it to None drops its data
        self.has_cudagraphs = False
        self.mem_tl: Any = None
        self.use_device = _device_of(self.activities)
        self.preset_metadata: dict[str, str] = {}
        self._custom_profiler_config = _activities.custom_config(experimental_config)
        _activities.check_configs(self.activities, self.activity_configs, self._custom_profiler_config)
        self._finished: Recording | None = None  # the last completed cycle
        self._kept: list[Recording] = []  # with acc_events: those before it
        self._timer = _backend.step_timer(on_device=self.use_device == "cuda")
        self._exports = Exports()
        self._in_step = False
        self._metric_options: dict[str, Any] = {}  # of firelane.profile

    @property
    def activity_filters(self) -> dict[ProfilerActivity, set[str]]:
        """The types that were asked for by name, as torch 2.12 to 2.14 have them."""
        named = {activity: config.activity_types for activity, config in self.activity_configs.items()}
        return {activity: set(types) for activity, types in named.items() if types is not None}

    # -- recording ------------------------------------------------------------------------

    def start(self) -> None:
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        self.stop_trace()
        self.wait_for_exports()

    def prepare_trace(self) -> None:
        if self.with_modules and self._front == _KinetoProfile._front:  # firelane.profile has an option modules
            warnings.warn(_WITH_MODULES_IS_DEPRECATED, FutureWarning, stacklevel=2)
        if _WARNS_OF_ADJUSTING and _asked_for(self.experimental_config, "adjust_profiler_step"):
            warnings.warn(_ADJUST_IS_DEPRECATED, FutureWarning, stacklevel=2)
        is_on_device = _is_available(self.use_device)
        if ProfilerActivity.CPU not in self.activities and not is_on_device:
            raise AssertionError("No activities specified for the profiler")
        wanted = _activities.wanted_of(self.activities, self.activity_configs, self._custom_profiler_config)
        flags = flags_of(
            self,
            memory=self.profile_memory and wanted.memory,
            stacks=self.with_stack and wanted.stacks,
            use_cpu=ProfilerActivity.CPU in self.activities,
            without=wanted.without,
            use_device=self.use_device if wanted.device and is_on_device else None,
            front=self._front,
            output=self._output(),
            **self._more_flags(),
        )
        if wanted.cuda_sync:
            flags = replace(flags, cuda_sync=True)
        flags = replace(flags, **(wanted.metrics or self._metric_options))
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
        """Pauses or resumes the recording of CPU or GPU activity within the recorded window."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # -- results --------------------------------------------------------------------------

    def _results(self, wanted_for: str) -> Recording:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {wanted_for}")
        if self.profiler.is_running or self._finished is None:
            self.profiler._require_stopped()
        return self._finished or self.profiler

    def _require_events(self) -> None:
        """torch's trace_only: who asks for it gets the trace and nothing else."""
        if self.profiler is not None and _asked_for(self.experimental_config, "trace_only"):
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. "
                "Use export_chrome_trace() instead."
            )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Time and memory per operator, of the last cycle (of all cycles with acc_events).

        `include_python_functions`: rows of the Python functions that with_stack recorded, too.
        """
        self._require_events()
        grouping = (group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)
        return self._results("getting key averages").key_averages(*grouping)

    def events(self) -> RecordedEvents:
        """Every event of the last cycle (of all cycles with acc_events)."""
        self._require_events()
        return self._results("accessing events").function_events

    def export_chrome_trace(
        self,
        path: str,
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[int, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
        *,
        wait: bool = True,
    ) -> None:
        """Writes the last cycle as Chrome JSON, compressed if `path` ends in .gz. May be called any number of times.

        `cuda_graph_annotations` (torch.cuda.graph_annotations.get_kernel_annotations()) joins what the program said
        about the nodes of its CUDA graphs; graph_lanes="all" shows them on the lanes that it named.

        The file is complete when this returns. With wait=False inside `on_trace_ready` a background thread writes it
        while training continues; wait_for_exports() and stop() wait for it.
        """
        _graph_annotations.check(cuda_graph_annotations, graph_lanes)
        results = self._results("exporting chrome trace")
        annotations = dict(cuda_graph_annotations or {})

        def annotate() -> None:
            if annotations and results.trace is not None:
                _graph_annotations.annotate(path, annotations, graph_lanes, default_stream)

        def export() -> None:
            results.export_chrome_trace(path)
            annotate()

        if self._in_step and not wait:
            self._exports.submit(export)
        else:  # not through export(): a warning names the caller by how many frames lie between
            results.export_chrome_trace(path)
            annotate()

    def wait_for_exports(self) -> None:
        """Returns when all exports are written; raises the first error of failed ones, once."""
        self._exports.wait()

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes `root;...;leaf <us>` lines for flame graph tools. Needs with_stack=True."""
        self._results("exporting stacks").export_stacks(path, metric)

    def take_pending_cuspy_export(self) -> None:
        """torch's second collector is not used here, so that none of its exports is pending; None, as in torch."""
        return

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes memory over time by category (parameter, gradient, activation, ...).

        .html is a chart, .json and .json.gz are its points, .raw.json.gz is every event. docs/profiler.md says how
        categories are determined.
        """
        self._require_memory_flags()
        if device is None:
            device = f"{self.use_device}:0" if _is_available(self.use_device) and self.use_device else "cpu"
        export_memory_timeline(self._results("exporting the memory timeline").trace, path, device)

    def _memory_profile(self) -> Any:
        """torch's MemoryProfile of the last cycle; private there, too."""
        self._require_memory_flags()
        results = self._results("memory profiling")
        if results.trace is None or results.kineto_results is None:
            raise AssertionError("kineto_results must not be None")
        kineto_results: Any = results.kineto_results
        return MemoryProfile(kineto_results)

    def _require_memory_flags(self) -> None:
        missing = [f"{f}=True" for f in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, f)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")

    @property
    def trace(self) -> Trace | None:
        """The last cycle as a firelane.Trace; None if nothing could be recorded (see `losses`)."""
        return self._results("opening the trace").trace

    def diagnose(self) -> Table | None:
        """What limits the program and what to change, for the last cycle: `print(prof.diagnose())`.

        One row per finding, as trace.diagnose() returns them; None if nothing could be recorded. Steps outside the
        recorded cycle (a schedule's wait) show how long a step takes without recording.
        """
        trace = self._results("diagnosing").trace
        return None if trace is None else trace.diagnose()

    @property
    def losses(self) -> list[Any]:
        """What is missing from the trace and why; empty if nothing is."""
        recording = self._finished or self.profiler
        return recording.losses if recording is not None else []

    def save(self, path: str) -> None:
        """Saves the last cycle as a .lane file, the format that `firelane` opens fastest."""
        results = self._results("saving")
        self.wait_for_exports()
        results.save(path)

    def _repr_html_(self) -> str:
        if self._finished is None:
            return "<pre>firelane.profiler.profile: nothing recorded yet</pre>"
        return self.key_averages()._repr_html_()

    # -- metadata -------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a string to the trace's metadata; only while a cycle is prepared or recorded."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds JSON to the trace's metadata; only while a cycle is prepared or recorded."""
        json.loads(value)  # invalid JSON would make the whole file unreadable
        is_taken = self.profiler is not None and self.profiler.add_metadata(key, value)
        if (
            not is_taken and not self._is_waiting()
        ):  # Lightning adds its own after each step, whatever the schedule says
            warnings.warn(
                f"metadata {key!r} is dropped because no recording is active; preset_metadata_json() keeps it",
                stacklevel=2,
            )

    def _is_waiting(self) -> bool:
        """Between the cycles of a schedule, where metadata belongs to no trace, as in torch."""
        return False

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Adds JSON to the metadata of every cycle from now on."""
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
        return _ranks.distributed_info(dist)

    def _more_flags(self) -> dict[str, Any]:
        """What torch.profiler has no argument for."""
        return {}

    def _output(self) -> str:
        """Where the recorder writes its file; empty: FIRELANE_DIR, or else the temporary folder."""
        return ""


def flags_of(profiler: Any, **more: Any) -> RecordFlags:
    """What a profiler with torch's attributes asks for; `more` overrides it."""
    config = profiler.experimental_config
    front = more.get("front", RecordFlags.front)
    asked_for = {
        "shapes": profiler.record_shapes,
        "memory": profiler.profile_memory,
        "stacks": profiler.with_stack,
        "flops": profiler.with_flops,
        "modules": profiler.with_modules,
        "cuda_sync": _asked_for(config, "enable_cuda_sync_events"),
        "overload_names": _asked_for(config, "capture_overload_names"),
        "event_metadata": _asked_for(config, "expose_kineto_event_metadata"),
        "call_stacks": profiler.with_stack and _asked_for(config, "verbose"),
        "collections": front != RecordFlags.front or _wants_collections(profiler.with_stack, config),
        "results_timeout_s": profiler.post_processing_timeout_s,
        "adjust_steps": _asked_for(config, "adjust_profiler_step"),
    }
    return RecordFlags(**{**asked_for, **more})


def _wants_collections(with_stack: bool, config: Any) -> bool:
    """As torch, with stacks and for who asks; with stacks always where torch has no such option, before 2.9."""
    is_option = "record_python_gc_info" in (torch._C._profiler._ExperimentalConfig.__init__.__doc__ or "")
    return with_stack and (_asked_for(config, "record_python_gc_info") or not is_option)


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
    """Whether a flag of torch's _ExperimentalConfig is set.

    Where its fields are not attributes, they can only be had by pickling it, in an order that is the constructor's from
    torch 2.11 on and another before: the field is the one that the flag changes.
    """
    if config is None or hasattr(config, flag):
        return bool(getattr(config, flag, False))
    try:
        without, with_flag = type(config)().__getstate__(), type(config)(**{flag: True}).__getstate__()
    except TypeError:  # this torch does not know it
        return False
    states = zip(config.__getstate__(), without, with_flag, strict=True)
    return any(field == changed for field, plain, changed in states if plain != changed)


def _plain(value: Any) -> Any:
    """Converts numpy scalars and arrays for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")
