"""What benchmarks record with, by the names of firelane's options, and torch.profiler started with the same."""

import torch

FLAGS = {
    "plain": {},
    "shapes": {"shapes": True},
    "shapes+memory+stack": {"shapes": True, "memory": True, "stacks": True},
}
_TORCH_NAMES = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}


def start_torch(flags: dict[str, bool], *, cuda: bool = False) -> torch.profiler.profile:
    activity = torch.profiler.ProfilerActivity
    prof = torch.profiler.profile(
        activities=[activity.CPU, activity.CUDA] if cuda else [activity.CPU],
        **{_TORCH_NAMES[name]: value for name, value in flags.items()},
    )
    prof.start()
    return prof
