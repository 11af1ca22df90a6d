"""`firelane.install()`: replaces torch.profiler's names with firelane's, for code you cannot edit.

Names imported before that (`from torch.profiler import profile`) stay torch's, so install first.
"""

from __future__ import annotations

from typing import Any

_NAMES = ("profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler")
_originals: dict[tuple[Any, str], Any] = {}


def install(*, autograd: bool = False) -> None:
    """From now on `torch.profiler.profile` and related names are firelane's. Calling it twice is fine.

    With autograd=True so is `torch.autograd.profiler.profile`, the older interface.
    """
    import torch.autograd.profiler
    import torch.profiler
    import torch.profiler.profiler

    from . import profiler
    from .profiler import _autograd

    for module in (torch.profiler, torch.profiler.profiler):
        for name in _NAMES:
            _replace(module, name, getattr(profiler, name))
    if autograd:
        _replace(torch.autograd.profiler, "profile", _autograd.profile)


def _replace(module: Any, name: str, ours: Any) -> None:
    if hasattr(module, name) and (module, name) not in _originals:
        _originals[module, name] = getattr(module, name)
        setattr(module, name, ours)


def uninstall() -> None:
    """Undoes install()."""
    while _originals:
        (module, name), original = _originals.popitem()
        setattr(module, name, original)
