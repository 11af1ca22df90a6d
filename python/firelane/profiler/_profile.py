"""`profile`: torch.profiler's context manager over firelane's recorder.

docs/profiler.md lists the differences from torch.profiler, with reasons.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerAction, ProfilerActivity

from . import _activities, _backend
from ._kineto_profile import _KinetoProfile
from ._schedule import Schedule, always_record
from ._transitions import action_map, actions_between


def _observer_from_environment() -> ExecutionTraceObserver | None:
    """The observer that ENABLE_PYTORCH_EXECUTION_TRACE asks for; torch before 2.7 does not support it."""
    build = getattr(ExecutionTraceObserver, "build_execution_trace_obs_from_env", None)
    return build() if build is not None else None


class profile(_KinetoProfile):  # noqa: N801 (torch's name)
    """Records what a PyTorch program does; a drop-in for torch.profiler.profile.

    Example:
        with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=handler) as prof:
            for batch in loader:
                train(batch)
                prof.step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    """

    def __init__(
        self,
        *,
        activities: _activities.Activities | None = None,
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
        activities = None if activities is None else list(activities)
        groups, configs = _activities.parse_activities(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            groups = groups | {ProfilerActivity.CUDA} if use_cuda else groups - {ProfilerActivity.CUDA}
            activities = [{group: configs[group]} if group in configs else group for group in groups]
        if not groups:
            raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=activities,
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
        _backend.init_kineto_steps("ProfilerStep")

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        try:
            self._stop()
            self._exports.wait(warn_only=exc_type is not None)  # the program's own error comes first
        finally:
            _backend.forget_kineto_steps("ProfilerStep")
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
        self._discard_unfinished_step()
        self._transit_action(self.current_action, None)
        self._timer = _backend.step_timer(on_device=self.use_device == "cuda")

    def step(self) -> None:
        """Ends the current step and begins the next."""
        self._end_step()
        before, now = self.current_action, self._action_at(self.step_num + 1)
        self.step_num += 1
        self.current_action = now
        self._in_step = True
        try:
            self._transit_action(before, now)
        finally:
            self._in_step = False
        if os.environ.get("KINETO_USE_DAEMON"):
            _backend.kineto_step("ProfilerStep")
        self._begin_step()

    def _begin_step(self) -> None:
        is_warm = self.step_num > 0 and self.current_action == ProfilerAction.NONE  # the first step is a warm-up
        if self.profiler is not None and self.profiler.is_running:
            self._timer.step(self.step_num, "light" if self.profiler.is_light else "recorded")
        else:
            self._timer.step(self.step_num, "unrecorded" if is_warm else "warmup")
        if self.record_steps:
            self.step_rec_fn = _StepRange(f"ProfilerStep#{self.step_num}", self.execution_trace_observer is not None)

    def _end_step(self) -> None:
        self._end_step_range()
        self._timer.finish()

    def _discard_unfinished_step(self) -> None:
        """The recording ends in the middle of a step: not timed, and its range (kept, as in torch) does not count."""
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
            self._finished = complete  # an aborted warm-up is not a cycle


class _StepRange:
    """`ProfilerStep#N`: seen only by this recorder, which is cheap, or by all of torch's observers."""

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
