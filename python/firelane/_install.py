"""`firelane.install()`: replaces torch.profiler's names with firelane's, for code you cannot edit.

Names imported before that (`from torch.profiler import profile`) stay torch's, so install first.
"""

from __future__ import annotations

from typing import Any

_NAMES = ("profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler")
_originals: dict[tuple[Any, str], Any] = {}


def install() -> None:
    """From now on `torch.profiler.profile` and related names are firelane's. Calling it twice is fine."""
    import torch.profiler
    import torch.profiler.profiler

    from . import profiler

    for module in (torch.profiler, torch.profiler.profiler):
        for name in _NAMES:
            if hasattr(module, name) and (module, name) not in _originals:
                _originals[module, name] = getattr(module, name)
                setattr(module, name, getattr(profiler, name))


def uninstall() -> None:
    """Undoes install()."""
    while _originals:
        (module, name), original = _originals.popitem()
        setattr(module, name, original)
