#!/usr/bin/env python3
"""A realistic step: training a small transformer on the CPU, unrecorded, with firelane and with torch.profiler.

    cmake --build build/release --target record_floor
    .venv/bin/python bench/record_step.py           # about a minute
    .venv/bin/python bench/record_step.py --write   # updates the table in bench/README.md

All variants run in one process, in turn, round after round; each result is the median of the rounds' medians, in CPU
time of the training thread (other programs on the machine do not count, and a CPU model's backward pass runs on that
thread). The time of the other threads, which are the recorder's, is listed separately. The model is small (width 64,
4 layers, batch 4), so that ops are short and a recorder's cost shows.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import statistics
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

import readme

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes+memory+stack": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


class Training:
    def __init__(self) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        layer = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, batch_first=True)
        self.model = nn.TransformerEncoder(layer, num_layers=4)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=False)
        self.batch = torch.randn(4, 16, 64)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.batch).sum().backward()
        self.optimizer.step()

    def median_ns(self, steps: int) -> float:
        times = []
        for _ in range(steps):
            start = time.thread_time_ns()
            self.step()
            times.append(time.thread_time_ns() - start)
        return statistics.median(times)


def profiler(which: str, flags: dict[str, bool]) -> Any:
    module = import_module("firelane.profiler" if which == "firelane" else "torch.profiler")
    return module.profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags)


@contextlib.contextmanager
def empty_callback(needs_inputs: bool) -> Iterator[None]:
    """What it costs torch to report its ops to anyone: a lower bound for every recorder."""
    floor = ctypes.PyDLL(str(ROOT / "build/release/bench/librecord_floor.so"))
    floor.floor_on(int(needs_inputs))
    yield
    floor.floor_off(int(needs_inputs))


def measure(rounds: int, steps: int) -> dict[str, float]:
    """ns per step: "nothing", "<recorder> <flags>" and, for the recorder's own thread, "beside <flags>"."""
    training = Training()
    training.median_ns(20)  # warm-up
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        figures.setdefault("nothing", []).append(training.median_ns(steps))
        for name, flags in FLAGS.items():
            with empty_callback(needs_inputs=bool(flags)):
                training.median_ns(3)
                figures.setdefault(f"empty callback {name}", []).append(training.median_ns(steps))
            for which in ("firelane", "torch.profiler"):
                with profiler(which, flags):
                    training.median_ns(3)
                    before = time.process_time_ns() - time.thread_time_ns()
                    figures.setdefault(f"{which} {name}", []).append(training.median_ns(steps))
                    beside = time.process_time_ns() - time.thread_time_ns() - before
                if which == "firelane":
                    figures.setdefault(f"beside {name}", []).append(beside / steps)
    return {name: statistics.median(values) for name, values in figures.items()}


def table(figures: dict[str, float]) -> str:
    base = figures["nothing"]
    lines = [
        (
            "| step of a small transformer | nothing | empty callback | firelane | torch.profiler "
            "| added time, firelane / torch.profiler | on another core |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in FLAGS:
        cells = [f"{base / 1e6:.2f} ms"]
        for which in ("empty callback", "firelane", "torch.profiler"):
            value = figures[f"{which} {name}"]
            cells.append(f"{value / 1e6:.2f} ms ({value / base:.2f}x)")
        added = (figures[f"firelane {name}"] - base) / (figures[f"torch.profiler {name}"] - base)
        lines.append(f"| {name} | {' | '.join(cells)} | {added:.2f} | {figures[f'beside {name}'] / 1e6:.2f} ms |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    result = table(measure(arguments.rounds, arguments.steps))
    print(result)
    if arguments.write:
        readme.write("record_step.py", result)


if __name__ == "__main__":
    main()
