"""Which activities a profiler records: torch 2.15's `activities` argument, for every torch.

    activities=[ProfilerActivity.CPU, {ProfilerActivity.CUDA: ["CONCURRENT_KERNEL", "GPU_MEMCPY"]}]
    activities=[ProfilerActivity.CPU, {ProfilerActivity.CUDA: ProfilerActivityConfig(profiler_configs=[CuspyConfig()])}]

A group alone is recorded whole; a list names the types of it that are wanted, an empty one none. The classes are
torch's own where torch has them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch.profiler
from torch.profiler import ProfilerActivity, supported_activities

from firelane._metrics import metric_options

if TYPE_CHECKING or not hasattr(torch.profiler, "ProfilerActivityConfig"):

    class _ProfilerExtensionConfig:
        """Base class of what `profiler_configs` may hold."""

    @dataclass(frozen=True)
    class CuspyConfig(_ProfilerExtensionConfig):
        """What torch's second CUDA collector records beyond kernels and copies; ours maps it to its own options."""

        enable_cuda_sync_events: bool = False
        enable_environment_counters: bool = False
        enable_graph_dependencies: bool = False
        enable_event_node_ids: bool = False

    @dataclass
    class PerformanceMetricsConfig(_ProfilerExtensionConfig):
        """Hardware metrics by name, sampled every `sampling_interval_ms` (1 ms)."""

        metric_names: list[str]
        sampling_interval_ms: float | None = None
        lookback_window_ms: float | None = None

    @dataclass
    class ProfilerActivityConfig:
        """What is recorded of one group: its types (None: all, []: none) and further configurations."""

        activity_types: list[str] | None = None
        profiler_configs: list[_ProfilerExtensionConfig] = field(default_factory=list)

else:
    from torch.profiler import CuspyConfig, PerformanceMetricsConfig, ProfilerActivityConfig

Activities = Iterable["ProfilerActivity | dict[ProfilerActivity, list[str] | ProfilerActivityConfig]"]

_GPU_WORK = ("GPU_MEMCPY", "GPU_MEMSET", "GPU_USER_ANNOTATION", "CONCURRENT_KERNEL")
# The types of each group, in torch's spelling.
_TYPES = {
    "CPU": (
        *("CPU_OP", "CPU_INSTANT_EVENT", "USER_ANNOTATION", "EXTERNAL_CORRELATION", "PYTHON_FUNCTION"),
        *("XPU_RUNTIME", "XPU_DRIVER", "CUDA_RUNTIME", "CUDA_DRIVER", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"),
    ),
    "CUDA": (*_GPU_WORK, "CUDA_RUNTIME", "CUDA_DRIVER", "OVERHEAD", "CUDA_SYNC"),
    "XPU": (*_GPU_WORK, "XPU_RUNTIME", "XPU_DRIVER", "OVERHEAD"),
    "MTIA": ("MTIA_CCP_EVENTS", "MTIA_RUNTIME", "MTIA_INSIGHT", "MTIA_COUNTERS"),
    "HPU": ("HPU_OP",),
    "PrivateUse1": (*_GPU_WORK, "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"),
}

# What the recorder can leave out, by the types that need it.
_PARTS = {
    "ops": ("CPU.CPU_OP",),
    "ranges": ("CPU.USER_ANNOTATION",),
    "kernels": ("CUDA.CONCURRENT_KERNEL",),
    "copies": ("CUDA.GPU_MEMCPY",),
    "memsets": ("CUDA.GPU_MEMSET",),
    "calls": ("CPU.CUDA_RUNTIME", "CPU.CUDA_DRIVER", "CUDA.CUDA_RUNTIME", "CUDA.CUDA_DRIVER"),
    "overhead": ("CUDA.OVERHEAD",),
}


def parse_activities(
    activities: Activities | None,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, ProfilerActivityConfig]]:
    """The groups that are recorded, and the configuration of those that have one."""
    if activities is None:
        return supported_activities(), {}
    groups: set[ProfilerActivity] = set()
    configs: dict[ProfilerActivity, ProfilerActivityConfig] = {}

    def add(group: ProfilerActivity) -> None:
        if group in groups:
            raise ValueError(f"Activity {group} specified more than once")
        groups.add(group)

    for item in activities:
        if isinstance(item, ProfilerActivity):
            add(item)
        elif isinstance(item, dict):
            for group, wanted in item.items():
                add(group)
                if isinstance(wanted, ProfilerActivityConfig):
                    configs[group] = wanted
                else:
                    configs[group] = ProfilerActivityConfig(activity_types=wanted)
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
    return groups, configs


@dataclass(frozen=True)
class Wanted:
    """What a recording has to hold, as far as the recorder can leave parts out."""

    without: tuple[str, ...]  # parts of the recorder's (RecordOptions)
    stacks: bool
    memory: bool
    device: bool
    cuda_sync: bool
    metrics: dict[str, Any]  # the recorder's options for them; empty: not asked for


def wanted_of(
    groups: set[ProfilerActivity], configs: dict[ProfilerActivity, ProfilerActivityConfig], custom: dict[str, Any]
) -> Wanted:
    """Raises torch's RuntimeError for a type that its group does not have, and TypeError for what is no group."""
    for activity in groups:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"activities: expected ProfilerActivity, got {activity!r}")

    def has(group: str, *types: str) -> bool:
        activity = getattr(ProfilerActivity, group, None)
        if activity not in groups:
            return False
        config = configs.get(activity)
        chosen = None if config is None else config.activity_types
        return chosen is None or any(each in chosen for each in types)

    for activity, config in configs.items():
        for each in config.activity_types or ():
            if not isinstance(each, str):
                raise TypeError(f"activities: the types of {activity.name} are names, got {each!r}")
            is_metric = activity.name == "XPU"  # there, unknown names are hardware metrics
            if each not in _TYPES[activity.name] and not is_metric:
                raise RuntimeError(f"Unknown or non-member activity type name: '{each}'")
    cuspy = cuspy_config(configs, custom)
    cuda = configs.get(ProfilerActivity.CUDA)
    named_sync = cuda is not None and "CUDA_SYNC" in (cuda.activity_types or ())
    metrics = _metrics_of(cuda)
    return Wanted(
        without=tuple(part for part, types in _PARTS.items() if not any(has(*each.split(".")) for each in types)),
        stacks=has("CPU", "PYTHON_FUNCTION"),
        memory=has("CPU", "CPU_INSTANT_EVENT"),
        device=has("CUDA", *_TYPES["CUDA"]) or bool(metrics) or not {a.name for a in groups} <= {"CPU", "CUDA"},
        cuda_sync=named_sync or (cuspy is not None and cuspy.enable_cuda_sync_events),
        metrics=metrics,
    )


def _metrics_of(cuda: ProfilerActivityConfig | None) -> dict[str, Any]:
    """Every sample is in the trace: there is no window to look back on. As in torch, no names are no metrics."""
    for config in cuda.profiler_configs if cuda is not None else ():
        if isinstance(config, PerformanceMetricsConfig) and config.metric_names:
            interval_ms = config.sampling_interval_ms
            return metric_options(config.metric_names, 1.0 if interval_ms is None else interval_ms)
    return {}


def cuspy_config(configs: dict[ProfilerActivity, ProfilerActivityConfig], custom: dict[str, Any]) -> CuspyConfig | None:
    """From the CUDA group's configuration, or from `custom_profiler_config`, where it was before torch 2.15."""
    cuda = configs.get(ProfilerActivity.CUDA)
    for config in cuda.profiler_configs if cuda is not None else ():
        if isinstance(config, CuspyConfig):
            return config
    if custom.get("backend") != "cuspy" and not custom.get("cuspy"):
        return None
    names = CuspyConfig.__dataclass_fields__
    return CuspyConfig(**{name: bool(custom.get(name)) for name in names})


def check_configs(
    groups: set[ProfilerActivity], configs: dict[ProfilerActivity, ProfilerActivityConfig], custom: dict[str, Any]
) -> None:
    """torch's errors, and one line for what is asked for and not recorded here."""
    cuspy = cuspy_config(configs, custom)
    if cuspy is not None and ProfilerActivity.CPU not in groups:
        raise ValueError("Cuspy currently requires CPU activity")
    if cuspy is None and "cuspy_async_export" in custom:
        raise ValueError("cuspy_async_export is only supported with the cuspy backend")
    missing = []
    if cuspy is not None and cuspy.enable_graph_dependencies:
        missing.append("dependencies between the nodes of CUDA graphs")
    if cuspy is not None and cuspy.enable_event_node_ids:
        missing.append("nodes of CUDA events in graphs")
    for group, config in configs.items():
        has_metrics = any(isinstance(each, PerformanceMetricsConfig) for each in config.profiler_configs)
        if has_metrics and group is not ProfilerActivity.CUDA:
            missing.append(f"hardware metrics of {group.name}")
    _metrics_of(configs.get(ProfilerActivity.CUDA))  # raises for names that cannot be
    if missing:
        warnings.warn(f"firelane does not record {', '.join(missing)}; the rest is recorded", stacklevel=4)


def custom_config(experimental_config: Any) -> dict[str, Any]:
    """`_ExperimentalConfig.custom_profiler_config`, which is JSON or the name of a backend."""
    text = getattr(experimental_config, "custom_profiler_config", None)
    if not text:
        return {}
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        return {"backend": text}
    return parsed if isinstance(parsed, dict) else {}
