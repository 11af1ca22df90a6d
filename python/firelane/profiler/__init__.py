"""A drop-in for torch.profiler.

    from firelane.profiler import profile, schedule, record_function, ProfilerActivity, tensorboard_trace_handler

Same names, same arguments, same table; docs/profiler.md says what differs. What does not need the recorder
(enums, record_function, the execution trace observer) is torch's own.
"""

from typing import Any

import torch.profiler
from torch.autograd import DeviceType, kineto_available
from torch.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    record_function,
    supported_activities,
)
from torch.profiler import (
    _ExperimentalConfig as _ExperimentalConfig,
)

from ._activities import CuspyConfig, PerformanceMetricsConfig, ProfilerActivityConfig
from ._events import EventList, FunctionEvent
from ._handlers import tensorboard_trace_handler
from ._kineto_profile import _KinetoProfile as _KinetoProfile
from ._profile import profile
from ._schedule import schedule

__all__ = [
    "CuspyConfig",
    "DeviceType",
    "EventList",
    "ExecutionTraceObserver",
    "FunctionEvent",
    "PerformanceMetricsConfig",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> Any:
    """What else programs import from torch.profiler (itt, RecordScope, KinetoStepTracker) is torch's own."""
    if name == "profiler" or name.startswith("__") or not hasattr(torch.profiler, name):  # profiler.profile is torch's
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch.profiler, name)
