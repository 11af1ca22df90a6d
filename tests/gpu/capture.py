#!/usr/bin/env python3
"""Recordings that start, pause, time steps and stop while the program captures a CUDA graph.

The capture must succeed, and the graph must compute what it should.

Usage:
    tests/gpu/capture.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from record_both import load_recorder


def captured(x: torch.Tensor, inside) -> bool:
    """Captures x @ x + 1, calls `inside` in the middle, and returns whether the replay gives the right result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x @ x
        inside()
        z = y + 1
    x.copy_(torch.rand_like(x))
    graph.replay()
    torch.cuda.synchronize()
    return torch.allclose(z, x @ x + 1)


def main() -> None:
    native = load_recorder()
    x = torch.rand(128, 128, device="cuda")
    (x @ x + 1).sum().item()  # loads cuBLAS before the first capture
    timer = native.StepTimer(True)
    session: Any = None

    def start() -> None:
        nonlocal session
        session = native.start(native.RecordOptions(cuda=True, memory=True))

    def stop() -> None:
        session.add_steps(timer)
        session.stop()

    def pause() -> None:
        session.pause_device()
        session.resume_device()

    def steps() -> None:
        timer.step(1, "unrecorded")
        timer.step(2, "unrecorded")

    timer.step(0, "unrecorded")
    failed = []
    for name, before, inside, after in (
        ("stop", start, stop, lambda: None),
        ("pause and resume", start, pause, stop),
        ("start", lambda: None, start, stop),
        ("steps", lambda: None, steps, lambda: None),
    ):
        before()
        try:
            ok, why = captured(x, inside), "wrong result"
        except RuntimeError as error:
            ok, why = False, str(error).splitlines()[0]
        if not ok:
            failed.append(name)
        after()
        losses = [] if session is None else [loss.reason for loss in session.losses]
        print(f"capture: {name} inside: {'fine' if ok else 'FAILED: ' + why}; losses {losses}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
