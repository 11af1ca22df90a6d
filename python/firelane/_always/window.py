"""A few steps in detail, in a file of their own: on a GPU first light ones, then a full one."""

from __future__ import annotations

import json
import platform
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firelane._auto import Phase
    from firelane._record import Recorder


class Window:
    """A few steps in detail: first light ones, then a full one."""

    def __init__(self, step: int, phases: list[Phase], path: Path, incident: Path | None) -> None:
        self.step = step
        self.phases = list(phases)
        self.path = path
        self.incident = incident
        self.hooks_ns = 0  # turning the recorder on and off
        self.longer_ns = 0  # its steps, against usual ones
        self.phase: Phase | None = None
        self.recorder: Recorder | None = None
        self.range_id = 0
        self.names_kernels = False

    def begin(self, options: dict[str, Any], uses_gpu: bool, account: str) -> None:
        from firelane.profiler import _backend

        self.recorder = _backend.start(
            **{name: on for name, on in options.items() if name != "cuda"},
            cuda=uses_gpu,
            start_paused=True,
            start_light="light" in self.phases,
            output=str(self.path),
            keep=True,
        )
        self.recorder.add_metadata("trace_id", f'"{uuid.uuid4().int:032X}"')
        self.recorder.add_metadata("front", '"firelane record"')
        self.recorder.add_metadata("python", json.dumps(platform.python_version()))
        self.recorder.add_metadata("always", account)

    @property
    def cost_ns(self) -> int:
        return self.hooks_ns + max(0, self.longer_ns)

    def begin_step(self, number: int, uses_gpu: bool) -> Phase:
        """Turns on what the next phase needs."""
        from firelane.profiler import _backend

        before, phase = self.phase, self.phases.pop(0)
        self.phase = phase
        assert self.recorder is not None
        if phase in ("light", "recorded") and before not in ("light", "recorded"):
            if uses_gpu:
                self.recorder.resume_device()
            self.recorder.resume()
        if phase == "recorded" and before != "recorded":
            self.recorder.begin_full()
            _backend.appear_on(True)
            self.names_kernels = True
        if phase != "warmup":
            self.range_id = _backend.begin_range(f"ProfilerStep#{number}")
        return phase

    def end_step(self) -> None:
        from firelane.profiler import _backend

        if self.range_id:
            _backend.end_range(self.range_id)
            self.range_id = 0

    def end(self) -> None:
        from firelane.profiler import _backend

        self.end_step()
        if self.names_kernels:
            _backend.appear_on(False)
            self.names_kernels = False
        if self.recorder is not None:
            self.recorder.stop()
            self.recorder = None
