"""The flags that benchmarks record with, under firelane's names, and torch.profiler started with the same flags."""

from typing import Any

import torch

FLAGS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"shapes": True},
    "shapes+memory+stack": {"shapes": True, "memory": True, "stacks": True},
}
_TORCH_NAMES = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}


def start_torch(flags: dict[str, bool], *, cuda: bool = False) -> torch.profiler.profile:
    activity = torch.profiler.ProfilerActivity
    options: dict[str, Any] = {_TORCH_NAMES[name]: value for name, value in flags.items()}
    prof = torch.profiler.profile(activities=[activity.CPU, activity.CUDA] if cuda else [activity.CPU], **options)
    prof.start()
    return prof
