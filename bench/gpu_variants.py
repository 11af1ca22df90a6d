#!/usr/bin/env python3
"""Which way of using CUPTI is cheapest: each is timed in turn, interleaved with none, in one process on one GPU.

    bench/gpu_variants.py [--rounds 12] [--steps 4] [--ops 1500] [--json FILE]

Programs as in bench/gpu.py: a loop of tiny ops, and the training step of an 8-layer GPT. Steps are timed one by one,
between synchronizations. `after` is the time with everything turned off again but CUPTI still in the process; then
CUPTI is detached, so that no variant sees what another left behind. Results: the median and the 20th percentile over
all rounds, relative to `nothing`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/gpu"))

import torch

from cuda_programs import train_step
from record_both import load_recorder

ROOT = Path(__file__).resolve().parent.parent

WAYS = {
    "nothing": None,
    "subscriber without callbacks": "subscribe",
    "empty callbacks, launches": "launches empty",
    "callbacks, launches": "launches",
    "callbacks, wanted calls": "callbacks",
    "callbacks, launches of the runtime": "launches runtime-callbacks",
    "callbacks, launches of the driver": "launches driver-callbacks",
    "callbacks, an event every launch": "launches runtime-callbacks events1",
    "callbacks, an event every 8 launches": "launches runtime-callbacks events8",
    "callbacks, an event every 32 launches": "launches runtime-callbacks events32",
    "kernels": "concurrent",
    "kernels of one context": "context",
    "kernels, device buffers of 64 MiB": "concurrent device64",
    "kernels, one at a time": "kernel",
    "kernels, copies, sets": "concurrent copies",
    "work + callbacks, launches": "concurrent copies launches",
    "work + callbacks, wanted": "concurrent copies callbacks",
    "work + callbacks, runtime": "concurrent copies runtime-callbacks",
    "work + callbacks, driver": "concurrent copies driver-callbacks",
    "work + call records": "concurrent copies runtime driver some-off",
    "work + runtime records": "concurrent copies runtime some-off",
    "work + launches turned on": "concurrent copies some-on",
    "work + callbacks, zeroed 16 MiB": "concurrent copies callbacks big zeroed",
    "work + callbacks, shared buffer": "concurrent copies callbacks shared",
    "work + callbacks, pinned": "concurrent copies callbacks pinned",
    "work + callbacks, 100 ms flushes": "concurrent copies callbacks period",
    "work + callbacks + overhead": "concurrent copies callbacks overhead",
    "hardware events": "hardware concurrent copies callbacks",
}
AFTER = [
    "subscriber without callbacks",
    "callbacks, wanted calls",
    "kernels",
    "work + callbacks, wanted",
    "work + call records",
]


def build() -> ctypes.CDLL:
    import nvidia

    places = ("cu*/include", "cuda_*/include", "../triton/backends/nvidia/include")
    folders = [folder for base in nvidia.__path__ for place in places for folder in Path(base).glob(place)]
    folders += [Path("/usr/local/cuda/include"), Path("/usr/local/cuda/extras/CUPTI/include")]
    library = Path(tempfile.mkdtemp()) / "gpu_variants.so"
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-O2",
            "-shared",
            "-fPIC",
            *(f"-I{f}" for f in folders),
            str(ROOT / "bench/gpu_variants.cc"),
            "-o",
            str(library),
            "-ldl",
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


def clock_source() -> str:
    try:
        return Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError:
        return "unknown"


def low(values: list[float]) -> float:
    return statistics.quantiles(values, n=5)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--ops", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=60, help="no new round after this")
    parser.add_argument("--only", help="names of ways, separated by ';'")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print the name of each way before it runs")
    args = parser.parse_args()
    library = build()
    native = load_recorder()
    x = torch.zeros(8, device="cuda")
    step = train_step(8)

    def tiny() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(args.ops):
            x.add_(1)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / args.ops * 1e6

    def steps() -> list[float]:
        times = []
        for _ in range(args.steps):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e6)
        return times

    for _ in range(5):
        tiny(), steps()
    costs = (ctypes.c_double * 3)()
    library.clock_costs(costs)
    clocks = {"source": clock_source(), "rdtsc_ns": costs[0], "clock_gettime_ns": costs[1], "cupti_ns": costs[2]}
    print("clocks", clocks, flush=True)

    times: dict[str, dict[str, list[float]]] = {}
    came: dict[str, list[int]] = {}
    refused: dict[str, int] = {}

    def measure(name: str) -> None:
        row = times.setdefault(name, {"op": [], "step": []})
        step()
        row["op"].append(tiny())
        row["step"] += steps()

    def one_way(name: str, ways: str) -> None:
        code = library.begin(ways.encode())
        if code:
            refused[name] = code
        if code == 0:
            measure(name)
        library.end()
        values = (ctypes.c_uint64 * 6)()
        library.counts(values)
        came[name] = list(values)
        if name in AFTER and code == 0:
            measure("after " + name)
        torch.cuda.synchronize()
        library.leave()

    def firelane(name: str, detach: bool = True, **options) -> None:
        session = native.start(native.RecordOptions(cuda_detach=detach, **options))
        measure(name)
        session.stop()
        measure("after " + name)
        if not detach:
            library.leave()

    def torchs(name: str) -> None:
        prof = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        )
        prof.start()
        measure(name)
        prof.stop()
        torch.cuda.synchronize()
        library.leave()

    jobs: dict[str, Callable[[], None]] = {
        name: partial(measure, name) if ways is None else partial(one_way, name, ways) for name, ways in WAYS.items()
    }
    jobs["firelane, CPU only"] = lambda: firelane("firelane, CPU only", cuda=False)
    jobs["firelane"] = lambda: firelane("firelane", cuda=True)
    jobs["firelane, CUPTI stays"] = lambda: firelane("firelane, CUPTI stays", detach=False, cuda=True)
    jobs["torch.profiler"] = lambda: torchs("torch.profiler")
    if args.only:
        jobs = {name: jobs[name] for name in args.only.split(";")}
    shuffle = random.Random(1)
    begin = time.perf_counter()
    for number in range(args.rounds):
        if time.perf_counter() - begin > args.seconds:
            break
        names = [name for name in jobs if name not in refused]
        shuffle.shuffle(names)
        for name in names:
            if args.verbose:
                print(name, flush=True)
            jobs[name]()
        print(f"round {number} done, {time.perf_counter() - begin:.1f} s", flush=True)
        if args.json:  # every round: a variant that crashes must not lose the results of the others
            args.json.write_text(
                json.dumps(
                    {
                        "device": torch.cuda.get_device_name(),
                        "torch": torch.__version__,
                        "clocks": clocks,
                        "refused": refused,
                        "counts": came,
                        "us": times,
                    }
                )
            )
    base = {p: (statistics.median(v), low(v)) for p, v in times["nothing"].items()}
    print(
        f"nothing: op {base['op'][0]:.2f} (low {base['op'][1]:.2f}) us, "
        f"step {base['step'][0]:.0f} (low {base['step'][1]:.0f}) us"
    )
    for name, row in times.items():
        op = [statistics.median(row["op"]) - base["op"][0], low(row["op"]) - base["op"][1]]
        at_step = [statistics.median(row["step"]), low(row["step"])]
        print(
            f"{name:42} op +{op[0]:6.2f} low +{op[1]:6.2f}   step {at_step[0] / base['step'][0]:5.2f}x low "
            f"{at_step[1] / base['step'][1]:5.2f}x +{at_step[1] - base['step'][1]:7.0f}   {came.get(name, '')}"
        )
    print("refused", refused)


if __name__ == "__main__":
    main()
