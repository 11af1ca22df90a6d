"""`firelane.profile`: the profiler with defaults for a first look at a program."""

from __future__ import annotations

from typing import Any

from .profiler import profile as _profile


class profile(_profile):  # noqa: N801 (torch's name)
    """`with firelane.profile() as p: ...` records shapes, memory and modules.

    Everything else is as in firelane.profiler.profile. Python stacks stay off because they cost the most.
    """

    def __init__(
        self,
        *,
        record_shapes: bool = True,
        profile_memory: bool = True,
        with_modules: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(record_shapes=record_shapes, profile_memory=profile_memory, with_modules=with_modules, **more)
