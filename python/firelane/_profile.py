"""`firelane.profile`: the profiler by the recorder's own option names, the same as in C++ and for `firelane record`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, _ExperimentalConfig, supported_activities

from .profiler import profile as _profile


class profile(_profile):  # noqa: N801 (torch's name)
    """`with firelane.profile(shapes=True, memory=True) as p: ...`

    The options are those of docs/profiler.md ("Options"). Everything else (step(), key_averages(), trace, save(), ...)
    is as in firelane.profiler.profile, which takes torch.profiler's arguments instead.
    """

    _front = "firelane.profile"

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        modules: bool = False,
        cuda: bool = True,
        cuda_sync: bool = False,
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

    def step(self) -> None:
        """Ends the current step and begins the next. Without a schedule, steps are marked from the first call on."""
        self.record_steps = True
        super().step()
