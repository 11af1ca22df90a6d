"""`firelane.profile`: the profiler by the recorder's own option names, the same as in C++ and for `firelane record`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.profiler import ProfilerActivity, _ExperimentalConfig, supported_activities

from ._light import LIGHT_STEPS
from ._metrics import metric_options
from ._samples import checked_rate
from .profiler import profile as _profile


class profile(_profile):  # noqa: N801 (torch's name)
    """`with firelane.profile(shapes=True, memory=True) as p: ...`

    The options are those of docs/profiler.md ("Options"). Everything else (step(), key_averages(), trace, save(), ...)
    is as in firelane.profiler.profile, which takes torch.profiler's arguments instead.

    `light`: of the steps that a schedule records, so many of the first are light steps (docs/gpu.md), which times and
    verdicts are taken from; tables by op are of the others. So it is in each window that a schedule repeats. By
    default, with a GPU and a `firelane.profiler.schedule`, 3 or half of them, whichever is less; else none.
    `sample_rate`: how often a second the Python stacks of all threads are sampled meanwhile, 0.1 to 10,000; 0: never.
    """

    _front = "firelane.profile"

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        modules: bool = False,
        lines: bool = False,
        cuda: bool = True,
        cuda_sync: bool = False,
        metrics: bool | Sequence[str] = False,
        metric_interval_ms: float = 1.0,
        light: int | None = None,
        sample_rate: float = 0,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
    ) -> None:
        activities = {ProfilerActivity.CPU}
        if cuda and ProfilerActivity.CUDA in supported_activities():
            activities.add(ProfilerActivity.CUDA)
        super().__init__(
            activities=activities,
            record_shapes=shapes,
            profile_memory=memory,
            with_stack=stacks,
            with_modules=modules,
            experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True) if cuda_sync else None,
            schedule=schedule,
            on_trace_ready=on_trace_ready,
        )
        self._lines = lines
        self._metric_options = metric_options(metrics, metric_interval_ms)
        self._light = light
        self._light_steps = self._light_left = 0  # of a window; of the current one
        self._sample_rate = checked_rate(sample_rate)

    def _more_flags(self) -> dict[str, Any]:
        active = getattr(self.schedule, "active", None)
        light = self._light
        if light is None:
            light = min(LIGHT_STEPS, (active or 0) // 2) if self.use_device == "cuda" else 0
        self._light_steps = light if active is None else min(light, active - 1)
        return {"light": self._light_steps > 0, "sample_rate": self._sample_rate, "lines": self._lines}

    def start_trace(self) -> None:
        super().start_trace()
        self._light_left = self._light_steps  # of each window, also of one that was not prepared before

    def _begin_step(self) -> None:
        if self.profiler is not None and self.profiler.is_light:
            if self._light_left == 0:
                self.profiler.begin_full()
            self._light_left -= 1
        super()._begin_step()

    def step(self) -> None:
        """Ends the current step and begins the next. Without a schedule, steps are marked from the first call on."""
        self.record_steps = True
        super().step()
