#!/usr/bin/env python3
"""What a recorded op costs: firelane, torch.profiler and an empty callback, interleaved in one process.

    bench/record.py [--rounds 15] [--ops 4000] [--write]
    bench/record.py --activities           what less costs: chosen activities instead of the whole CPU group

Each round times the same loop under every recorder in turn, in CPU time of the thread (other programs on the machine
do not count); starting, stopping and a first loop are not timed, and a quarter of a second passes in between, so that
a recorder that writes in the background has started to. A result is the first quartile over the rounds with the
recorder minus that without: machines have slow phases that no recorder caused. --write puts the table into
bench/README.md.
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch

import firelane.profiler
import readme
from firelane import _record
from flags import FLAGS, start_torch

ROOT = Path(__file__).resolve().parent.parent

# Goals relative to the lower bound and to torch.profiler.
GOALS = {
    "plain": "floor <= 1.25x, torch.profiler <= 0.40x",
    "shapes": "",
    "shapes+memory+stack": "torch.profiler <= 0.50x",
}


@dataclass
class Recorder:
    name: str
    start: Callable[[], Any]
    stop: Callable[[Any], None]


def recorders_of_activities() -> list[Recorder]:
    """firelane.profiler with activities=[{CPU: types}], started as the drop-in does, by the types' names."""
    cpu = torch.profiler.ProfilerActivity.CPU
    chosen = {
        "all": [cpu],
        "CPU_OP": [{cpu: ["CPU_OP"]}],
        "USER_ANNOTATION": [{cpu: ["USER_ANNOTATION"]}],
        "[]": [{cpu: []}],
    }

    def start(activities: Any) -> firelane.profiler.profile:
        prof = firelane.profiler.profile(activities=activities)
        prof.start()
        return prof

    return [Recorder(name, partial(start, activities), lambda prof: prof.stop()) for name, activities in chosen.items()]


def recorders() -> list[Recorder]:
    floor = ctypes.PyDLL(str(ROOT / "build/release/bench/librecord_floor.so"))
    result = [
        Recorder("empty callback", lambda: floor.floor_on(0), lambda _: floor.floor_off(0)),
        Recorder("empty callback, needs inputs", lambda: floor.floor_on(1), lambda _: floor.floor_off(1)),
    ]
    for flags, values in FLAGS.items():

        def start_ours(values=values):
            return _record.start(_record.RecordOptions(cuda=False, **values))

        result.append(Recorder(f"torch.profiler {flags}", partial(start_torch, values), lambda prof: prof.stop()))
        result.append(Recorder(f"firelane {flags}", start_ours, lambda recorder: recorder.stop()))
    return result


def add_scalar(n: int, x: torch.Tensor, _y: torch.Tensor) -> None:
    for _ in range(n):
        x.add_(1)


def add_tensor(n: int, x: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(n):
        x.add_(y)


def add_in_range(n: int, x: torch.Tensor, y: torch.Tensor) -> None:
    for _ in range(n):
        with torch.profiler.record_function("range"):
            x.add_(y)


LOOPS = {"x.add_(1)": add_scalar, "x.add_(y)": add_tensor}


def loop_ns(loop: Callable[..., None], n: int, x: torch.Tensor, y: torch.Tensor) -> float:
    loop(n, x, y)
    time.sleep(0.25)
    loop(n // 8, x, y)
    start = time.thread_time_ns()
    loop(n, x, y)
    return (time.thread_time_ns() - start) / n


def measure(
    rounds: int, ops: int, all_recorders: list[Recorder], loops: dict[str, Callable[..., None]]
) -> dict[str, dict[str, float]]:
    """ns per op, by loop and recorder; "base" is the loop alone, "after" the same after all recorders have run."""
    x, y = torch.zeros(1), torch.ones(1)
    torch.set_num_threads(1)
    result: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        for name, loop in loops.items():
            times: dict[str, list[float]] = {name: [] for name in ("base", *(r.name for r in all_recorders), "after")}
            for _ in range(rounds):
                times["base"].append(loop_ns(loop, ops, x, y))
                for recorder in all_recorders:
                    token = recorder.start()
                    times[recorder.name].append(loop_ns(loop, ops, x, y))
                    recorder.stop(token)
                times["after"].append(loop_ns(loop, ops, x, y))
            quartile = {key: statistics.quantiles(values, n=4)[0] for key, values in times.items()}
            result[name] = {key: value - quartile["base"] for key, value in quartile.items()} | {
                "base": quartile["base"]
            }
    return result


def table(result: dict[str, dict[str, float]]) -> str:
    loops = list(result)
    base = ", ".join(f"`{loop}` {result[loop]['base']:.0f} ns" for loop in loops)
    after = ", ".join(f"{result[loop]['after']:+.0f} ns" for loop in loops)
    lines = [
        "| added ns per op | " + " | ".join(f"`{loop}`" for loop in loops) + " | ratios | goal |",
        "|---|---:|---:|---|---|",
    ]
    for recorder in result[loops[0]]:
        if recorder in ("base", "after"):
            continue
        cells = [f"{result[loop][recorder]:.0f}" for loop in loops]
        ratios, goal = "", ""
        if recorder.startswith("firelane "):
            flags = recorder.removeprefix("firelane ")
            other = "empty callback" if flags == "plain" else "empty callback, needs inputs"
            floor = [result[loop][recorder] / result[loop][other] for loop in loops]
            peer = [result[loop][recorder] / result[loop][f"torch.profiler {flags}"] for loop in loops]
            ratios = f"{floor[0]:.2f} / {floor[1]:.2f} of the callback, {peer[0]:.2f} / {peer[1]:.2f} of torch.profiler"
            goal = GOALS[flags]
        lines.append(f"| {recorder} | " + " | ".join(cells) + f" | {ratios} | {goal} |")
    lines.append("")
    lines.append(f"Without a recorder: {base}; after all of them ran: {after}.")
    lines.append(f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}.")
    return "\n".join(lines)


def table_of_activities(result: dict[str, dict[str, float]]) -> str:
    loops = list(result)
    lines = [
        "| added ns per iteration | " + " | ".join(f"`{loop}`" for loop in loops) + " |",
        "|---|" + "---:|" * len(loops),
    ]
    for name in result[loops[0]]:
        if name in ("base", "after"):
            continue
        cells = [f"{result[loop][name]:.0f} ({result[loop][name] / result[loop]['all']:.2f})" for loop in loops]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    base = ", ".join(f"`{loop}` {result[loop]['base']:.0f} ns" for loop in loops)
    after = ", ".join(f"{result[loop]['after']:+.0f} ns" for loop in loops)
    return "\n".join([*lines, "", f"Without a recorder: {base}; after all of them ran: {after}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ops", type=int, default=4000)
    parser.add_argument("--activities", action="store_true", help="what chosen activities cost")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.activities:
        loops = {**LOOPS, "range with x.add_(y)": add_in_range}
        text = table_of_activities(measure(args.rounds, args.ops, recorders_of_activities(), loops))
    else:
        text = table(measure(args.rounds, args.ops, recorders(), LOOPS))
    print(text)
    if args.write:
        readme.write("record.py --activities" if args.activities else "record.py", text)


if __name__ == "__main__":
    main()
