#!/usr/bin/env python3
"""A realistic step: a small transformer's training step on the CPU, with nothing, firelane and torch.profiler.

    .venv/bin/python bench/record_step.py           # about a minute
    .venv/bin/python bench/record_step.py --write   # updates the table in bench/README.md

All run in one process, in turn, round after round; each figure is the median of the rounds' medians. The model is
small (width 64, 4 layers, batch 4), so that ops are short and a recorder's cost shows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "bench/README.md"
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
            start = time.perf_counter_ns()
            self.step()
            times.append(time.perf_counter_ns() - start)
        return statistics.median(times)


def profiler(which: str, flags: dict[str, bool]) -> Any:
    if which == "firelane":
        from firelane.profiler import profile
    else:
        from torch.profiler import profile
    return profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags)


def measure(rounds: int, steps: int) -> dict[str, float]:
    training = Training()
    training.median_ns(20)  # what is only slow the first time
    figures: dict[str, list[float]] = {}
    for _ in range(rounds):
        figures.setdefault("nothing", []).append(training.median_ns(steps))
        for name, flags in FLAGS.items():
            for which in ("firelane", "torch.profiler"):
                with profiler(which, flags):
                    training.median_ns(3)
                    figures.setdefault(f"{which} {name}", []).append(training.median_ns(steps))
    return {name: statistics.median(values) for name, values in figures.items()}


def table(figures: dict[str, float]) -> str:
    base = figures["nothing"]
    lines = ["| step of a small transformer | nothing | firelane | torch.profiler | added time, firelane / torch.profiler |",
             "|---|--:|--:|--:|--:|"]
    for name in FLAGS:
        ours, theirs = figures[f"firelane {name}"], figures[f"torch.profiler {name}"]
        lines.append(f"| {name} | {base / 1e6:.2f} ms | {ours / 1e6:.2f} ms ({ours / base:.2f}x) "
                     f"| {theirs / 1e6:.2f} ms ({theirs / base:.2f}x) | {(ours - base) / (theirs - base):.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    result = table(measure(arguments.rounds, arguments.steps))
    print(result)
    if arguments.write:
        text = README.read_text()
        begin, end = "<!-- record_step.py begin -->\n", "<!-- record_step.py end -->"
        before, rest = text.split(begin)
        README.write_text(before + begin + result + end + rest.split(end)[1])


if __name__ == "__main__":
    main()
