#!/usr/bin/env python3
"""What recording costs a GPU program: firelane and torch.profiler, interleaved in one process on one GPU.

    bench/gpu.py [--rounds 5] [--steps 10] [--ops 4000] [--json FILE]

Two programs: a loop of tiny ops (x.add_(1)), and the training step of an 8-layer GPT (bf16, AdamW, launch-bound). Each
round times both under every recorder in turn, wall clock, between two synchronisations; starting, stopping and untimed
warm-up steps are outside. A figure is the median over rounds of the ratio to the same round without a recorder.
torch.profiler leaves CUPTI in the process, which slows what comes after down; here it is made to leave between recordings. What
CUPTI costs when it is left in, and after it has gone, is timed at the beginning.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/gpu"))

import torch  # noqa: E402
from flags import FLAGS, start_torch  # noqa: E402
from programs import train_step  # noqa: E402
from record_both import load_recorder  # noqa: E402


def recorders(native):
    yield "nothing", lambda: None, lambda _: None
    for name, flags in FLAGS.items():
        yield (
            f"firelane {name}",
            lambda flags=flags: native.start(native.RecordOptions(cuda=True, **flags)),
            lambda session: session.stop(),
        )

        def stop(prof):
            prof.stop()
            torch.cuda.synchronize()
            ctypes.CDLL(f"libcupti.so.{torch.version.cuda.split('.')[0]}").cuptiFinalize()

        yield f"torch.profiler {name}", partial(start_torch, flags, cuda=True), stop


def timed(run, times: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--ops", type=int, default=4000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    native = load_recorder()
    x = torch.zeros(8, device="cuda")
    programs = {"tiny op": (lambda: x.add_(1), args.ops), "GPT step": (train_step(8), args.steps)}
    seconds: dict[str, dict[str, list[float]]] = {p: {} for p in programs}
    for run, times in programs.values():
        timed(run, times)
    before = {p: [timed(run, times) for _ in range(5)] for p, (run, times) in programs.items()}

    # The first recording of the process pays for CUPTI's start; the step after a recording must be as before.
    begin = time.perf_counter()
    session = native.start(native.RecordOptions(cuda=True, cuda_detach=False))
    first_start = time.perf_counter() - begin
    for run, times in programs.values():
        timed(run, max(times // 4, 2))
    session.stop()
    print("losses", [str(x) for x in session.losses], flush=True)
    after = {p: [timed(run, times) for _ in range(5)] for p, (run, times) in programs.items()}

    native.start(native.RecordOptions(cuda=True)).stop()
    detached = {p: [timed(run, times) for _ in range(5)] for p, (run, times) in programs.items()}

    for number in range(args.rounds):
        for name, start, stop in recorders(native):
            session = start()
            for program, (run, times) in programs.items():
                timed(run, max(times // 5, 2))
                seconds[program].setdefault(name, []).append(timed(run, times))
            stop(session)
        print(f"round {number} done", flush=True)

    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "first_start_s": first_start, "seconds": seconds,
              "before_s": before, "after_firelane_s": after, "after_detaching_s": detached}
    print(f"first start {first_start:.2f} s")
    for program, by_name in seconds.items():
        base = by_name["nothing"]
        print(f"\n{program}: {statistics.median(base) * 1e6:.1f} us without a recorder "
              f"(before any recording {statistics.median(before[program]) * 1e6:.1f}, with CUPTI left in "
              f"{statistics.median(after[program]) * 1e6:.1f}, after it has gone {statistics.median(detached[program]) * 1e6:.1f})")
        added = {}
        for name, times in by_name.items():
            ratio = statistics.median(t / b for t, b in zip(times, base))
            added[name] = statistics.median(t - b for t, b in zip(times, base))
            print(f"  {name:36} {ratio:6.2f}x  +{added[name] * 1e6:9.1f} us")
        for flags in FLAGS:
            share = added[f"firelane {flags}"] / added[f"torch.profiler {flags}"]
            print(f"  {flags}: firelane adds {share:.2f} of what torch.profiler adds")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
