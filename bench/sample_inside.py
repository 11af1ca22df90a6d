#!/usr/bin/env python3
"""What `firelane record --sample` costs: a loop of Python with the sampler inside of the process on and off, in turns.

    bench/sample_inside.py [--threads 20] [--rate 200] [--blocks 12]

CPU time of the thread that computes, with against without, and of the sampler's thread as a share of it. All other
threads wait.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from firelane import _trace


def compute() -> int:
    total = 0
    for i in range(9_000_000):
        total += i * i
    return total


def low(values: list[float]) -> float:
    return statistics.quantiles(values, n=5)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--blocks", type=int, default=12)
    args = parser.parse_args()
    over = threading.Event()
    others = [threading.Thread(target=over.wait) for _ in range(args.threads)]
    for thread in others:
        thread.start()
    sampled: list[float] = []
    alone: list[float] = []
    own: list[float] = []
    for number in range(args.blocks):
        is_on = number % 2 == number // 2 % 2  # on off off on: neither is always the first
        sampler = _trace.record_stacks(args.rate) if is_on else None
        thread_begin, process_begin = time.thread_time(), time.process_time()
        compute()
        thread_s, process_s = time.thread_time() - thread_begin, time.process_time() - process_begin
        (sampled if is_on else alone).append(thread_s)
        if sampler is not None:
            sampler.stop()
            own.append((process_s - thread_s) / thread_s)
    over.set()
    ratio = statistics.median(sampled) / statistics.median(alone)
    print(
        f"{args.threads} other threads, {args.rate:g} Hz: {ratio:.3f}x of the "
        f"program's CPU time (lowest fifths {low(sampled) / low(alone):.3f}x); the sampler's own is "
        f"{100 * statistics.median(own):.1f}% of it"
    )


if __name__ == "__main__":
    main()
