"""Phases that each keep one part of a GPU busy, so that what its hardware metrics must say is known: matmuls in bf16,
additions of large tensors, copies from the host, nothing.

    firelane record --steps 0 --metrics -o run.lane -- python tests/gpu/metric_phases.py [ms a phase]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

MILLIONS = 1 << 20
WARMUP_SECONDS = 1.5  # the first sample comes about 0.4 s after a GPU's first use


def phases() -> dict[str, Callable[[], object] | None]:
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(64 * MILLIONS, device="cuda")
    y = torch.empty_like(x)
    host = torch.empty(64 * MILLIONS, dtype=torch.uint8).pin_memory()
    device = torch.empty_like(host, device="cuda")
    return {
        "matmul": lambda: torch.mm(a, a),
        "add": lambda: torch.add(x, 1.0, out=y),
        "from host": lambda: device.copy_(host, non_blocking=True),
        "idle": None,
    }


def main() -> None:
    seconds = float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.05
    todo = phases()
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARMUP_SECONDS:
        for run in todo.values():
            if run:
                run()
        torch.cuda.synchronize()
    for _ in range(2):
        for name, run in todo.items():
            with torch.profiler.record_function(f"phase {name}"):
                begin = time.perf_counter()
                while time.perf_counter() - begin < seconds:
                    if run is None:
                        time.sleep(0.005)
                        continue
                    for _ in range(4):
                        run()
                    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
