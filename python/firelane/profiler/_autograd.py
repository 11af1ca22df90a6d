"""`torch.autograd.profiler.profile` over firelane's recorder; `firelane.install(autograd=True)` puts it there.

One recording per `with` block, torch's arguments and methods; results are those of firelane.profiler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torch.profiler import ProfilerActivity

from ._events import EventList, RecordedEvents
from ._kineto_profile import _is_available, flags_of
from ._kineto_results import KinetoResults
from ._recording import Recording


class profile:  # noqa: N801 (torch's name)
    """Records what happens in a `with` block; a drop-in for torch.autograd.profiler.profile."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        **_: Any,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_cuda = use_cuda
        self.use_device = use_device if _is_available(use_device) else None
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.entered = False
        self._recording: Recording | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        earlier = [self._recording] if self.acc_events and self._recording is not None else []
        flags = flags_of(self, use_cpu=self.use_cpu, use_device=self.use_device)
        self._recording = Recording(flags, self.custom_trace_id_callback, earlier)
        self._recording.prepare()
        self._recording.start()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> bool | None:
        if not self.enabled:
            return None
        if self._recording is not None:
            self._recording.stop()
        self.entered = False
        return False

    def _results(self) -> Recording:
        if self._recording is None or self._recording.is_prepared:
            raise RuntimeError("Profiler didn't finish running")
        return self._recording

    def __repr__(self) -> str:
        is_finished = self.enabled and self._recording is not None and not self._recording.is_prepared
        return repr(self.function_events) if is_finished else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        is_finished = self.enabled and self._recording is not None and not self._recording.is_prepared
        return str(self.function_events) if is_finished else "<unfinished torch.autograd.profile>"

    @property
    def function_events(self) -> RecordedEvents:
        return self._results().function_events

    @property
    def kineto_results(self) -> KinetoResults | None:
        return None if self._recording is None else self._recording.kineto_results

    def table(self, *args: Any, **kwargs: Any) -> str:
        return self._results().table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        grouping = (group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)
        return self._results().key_averages(*grouping)

    def total_average(self) -> Any:
        return self._results().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self._results().self_cpu_time_total

    def export_chrome_trace(self, path: str, *_: Any) -> None:
        self._results().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        self._results().export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        if self._recording is not None:
            self._recording.toggle_collection_dynamic(enabled, activities)

    @property
    def _stats(self) -> Any:
        return None if self._recording is None else self._recording._stats
