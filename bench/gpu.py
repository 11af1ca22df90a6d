#!/usr/bin/env python3
"""What recording costs a GPU program: firelane and torch.profiler, interleaved in one process on one GPU.

    bench/gpu.py [--rounds 20] [--seconds 100] [--only "firelane, light"] [--json FILE]

Programs: a loop of tiny ops (x.add_(1)), and training steps of an 8-layer GPT (bf16 autocast, launch-bound) with
default AdamW and with one tensor at a time, each step between two synchronizations. Every round turns on each way of
recording in turn, in random order; starting, stopping and a first step are not timed. Two lower bounds are timed as
well: torch calling an empty callback for each op, and CUPTI recording kernels, memcpys and memsets that nobody reads.

The training thread and the backward thread each have a core to themselves; all other threads, including the recorders',
share the remaining cores. Left to the scheduler, the same step takes 14 or 22 ms on a virtual machine. torch.profiler
leaves CUPTI in the process, which slows down everything after it; here CUPTI is detached between recordings.
Results: the median over all rounds, and the 20th percentile, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/gpu"))

import torch

from cuda_programs import train_step
from flags import FLAGS, start_torch
from gpu_variants import build as build_variants
from record_both import load_recorder

ROOT = Path(__file__).resolve().parent.parent

# Hardware metrics beside a plain recording, by the time between samples in ms.
METRICS = {"firelane, metrics": 1.0, "firelane, metrics every 100 us": 0.1, "firelane, metrics every 50 us": 0.05}
FLOORS = {"an empty callback": "ops", "CUPTI's records of work alone": "work"}


def build_floor() -> ctypes.CDLL:
    torch_folder = Path(torch.__file__).parent
    library = Path(os.environ.get("TMPDIR", "/tmp")) / f"record_floor_{os.getpid()}.so"
    folders = [torch_folder / "include", torch_folder / "include/torch/csrc/api/include"]
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O2",
            "-shared",
            "-fPIC",
            *(f"-I{f}" for f in folders),
            str(ROOT / "bench/record_floor.cc"),
            "-o",
            str(library),
            f"-L{torch_folder / 'lib'}",
            "-ltorch_cpu",
            "-lc10",
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


class Cores:
    """One core for the training thread, one for the backward thread, the rest for all other threads."""

    def __init__(self, step) -> None:
        self.main = os.getpid()
        before = {t: self.processor_ns(t) for t in self.threads()}
        step()
        torch.cuda.synchronize()
        used = {t: self.processor_ns(t) - before.get(t, 0) for t in self.threads() if t != self.main}
        self.backward = max(used, key=used.__getitem__)
        cores = sorted(os.sched_getaffinity(0))
        self.enough = len(cores) >= 12
        self.own = {self.main: {cores[2]}, self.backward: {cores[6]}} if self.enough else {}
        self.others = set(cores[8:])

    @staticmethod
    def threads() -> list[int]:
        return [int(task.name) for task in Path("/proc/self/task").iterdir()]

    @staticmethod
    def processor_ns(thread: int) -> int:
        try:
            return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])
        except OSError:  # it has ended
            return 0

    def assign(self) -> None:
        for thread in self.threads() if self.enough else []:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, self.own.get(thread, self.others))

    def release(self) -> None:
        """New threads must not inherit the core of the thread that starts them."""
        if self.enough:
            os.sched_setaffinity(self.main, self.others)


class Ways:
    """Each way of recording by name: start(name) turns it on, stop() turns it off."""

    def __init__(self, only: list[str]) -> None:
        self.native = load_recorder()
        self.variants = build_variants()
        self.floor = build_floor()
        self.names = ["nothing", *FLOORS, "firelane, light", "firelane, ops only", *METRICS]
        self.names += [f"{who} {flags}" for flags in FLAGS for who in ("firelane", "torch.profiler")]
        if only:
            self.names = [name for name in self.names if name == "nothing" or name in only]
        self.running: tuple[str, Any] = ("nothing", None)

    def start(self, name: str) -> None:
        who, _, flags = name.partition(" ")
        session: Any = None
        if FLOORS.get(name) == "ops":
            self.floor.floor_on(0)
        elif FLOORS.get(name) == "work":
            if code := self.variants.begin(b"concurrent copies"):
                raise SystemExit(f"gpu: CUPTI failed with {code}")
        elif name == "firelane, light":
            session = self.native.start(self.native.RecordOptions(cuda=True, start_light=True))
        elif name == "firelane, ops only":
            session = self.native.start(self.native.RecordOptions(cuda=False))
        elif name in METRICS:
            options = self.native.RecordOptions(cuda=True, metrics=True, metric_interval_ms=METRICS[name])
            session = self.native.start(options)
        elif who == "firelane":
            session = self.native.start(self.native.RecordOptions(cuda=True, **FLAGS[flags]))
        elif who == "torch.profiler":
            session = start_torch(FLAGS[flags], cuda=True)
        self.running = (name, session)

    def stop(self) -> list[str]:
        name, session = self.running
        self.running = ("nothing", None)
        if FLOORS.get(name) == "ops":
            self.floor.floor_off(0)
        elif FLOORS.get(name) == "work":
            self.variants.end()
        elif session is not None:
            session.stop()
        if name.startswith("torch") or FLOORS.get(name) == "work":
            torch.cuda.synchronize()
            self.variants.leave()
        return [loss.reason for loss in session.losses] if name.startswith("firelane") else []


def timed(run, times: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times * 1e6


def low(values: list[float]) -> float:
    return statistics.quantiles(values, n=5)[0]


def table(us: dict[str, dict[str, list[float]]]) -> str:
    lines = ["| | " + " | ".join(f"{p}, median | low" for p in us) + " |", "|---|" + "--:|--:|" * len(us)]
    for name in next(iter(us.values())):
        cells = []
        for by_name in us.values():
            base, values = by_name["nothing"], by_name[name]
            for figure in (statistics.median, low):
                unit = f"{figure(base) / 1e3:.2f} ms" if figure(base) > 1e3 else f"{figure(base):.2f} us"
                cells.append(unit if name == "nothing" else f"{figure(values) / figure(base):.2f}x")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Time added by firelane, relative to the time added by torch.profiler:",
        "",
        "| flags | " + " | ".join(f"{p}, median | low" for p in us) + " |",
        "|---|" + "--:|--:|" * len(us),
    ]
    for flags in FLAGS:
        cells = []
        if any(f"{who} {flags}" not in next(iter(us.values())) for who in ("firelane", "torch.profiler")):
            continue
        for by_name in us.values():
            for figure in (statistics.median, low):
                ours, torchs = (
                    figure(by_name[f"{who} {flags}"]) - figure(by_name["nothing"])
                    for who in ("firelane", "torch.profiler")
                )
                cells.append(f"{ours / torchs:.2f}")
        lines.append(f"| {flags} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=100, help="no new round after this")
    parser.add_argument(
        "--only", action="append", default=[], help="this way of recording; may be given more than once"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    ways = Ways(args.only)
    x = torch.zeros(8, device="cuda")
    programs = {
        "tiny op": (lambda: x.add_(1), 300, 3),
        "GPT step": (train_step(8, width=512, batch=16, length=512, foreach=None), 1, 4),
        "GPT step, a tensor at a time": (train_step(8), 1, 4),
    }
    for run, times, repeats in programs.values():
        for _ in range(3 * repeats):
            timed(run, times)
    cores = Cores(programs["GPT step"][0])

    us: dict[str, dict[str, list[float]]] = {p: {name: [] for name in ways.names} for p in programs}

    def measure(name: str) -> None:
        cores.assign()
        for program, (run, times, repeats) in programs.items():
            timed(run, max(times // 4, 1))
            us[program].setdefault(name, []).extend(timed(run, times) for _ in range(repeats))
        cores.release()

    losses: set[str] = set()
    turned_on: dict[str, list[float]] = {}
    turned_off: dict[str, list[float]] = {}
    shuffle = random.Random(1)
    begin = time.perf_counter()
    rounds = 0
    while rounds < args.rounds and time.perf_counter() - begin < args.seconds:
        names = list(ways.names)
        shuffle.shuffle(names)
        for name in names:
            cores.release()
            begin_start = time.perf_counter()
            ways.start(name)
            turned_on.setdefault(name, []).append(time.perf_counter() - begin_start)
            measure(name)
            begin_stop = time.perf_counter()
            losses |= set(ways.stop())
            turned_off.setdefault(name, []).append(time.perf_counter() - begin_stop)
            if name == "firelane plain":
                measure("after firelane")
        rounds += 1
        if args.json:
            args.json.write_text(
                json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "us": us})
            )
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {rounds} rounds, "
        f"{time.perf_counter() - begin:.0f} s, dedicated cores: {'yes' if cores.enough else 'no'}, "
        f"losses {sorted(losses)}\n"
    )
    print(table(us))
    print("\nmedian ms to start and to stop recording:")
    for name in ways.names:
        print(
            f"{name}: {statistics.median(turned_on[name]) * 1e3:.1f}, {statistics.median(turned_off[name]) * 1e3:.1f}"
        )


if __name__ == "__main__":
    main()
