#!/usr/bin/env python3
"""Starts and stops recordings while four threads launch, copy and allocate: nothing may crash, hang or be lost.

Usage:
    tests/gpu/stress.py [SECONDS] [--keep]      --keep: CUPTI stays in the process between recordings
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from record_both import load_recorder


def resident_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    detach = "--keep" not in sys.argv
    native = load_recorder()
    over = threading.Event()
    rounds = [0] * 4

    def work(number: int) -> None:
        x = torch.rand(128, 128, device="cuda")
        host = torch.rand(128, 128).pin_memory()
        while not over.is_set():
            y = (x @ x).relu_()
            y.copy_(host, non_blocking=True)
            torch.empty(1 << 16, device="cuda").zero_()
            rounds[number] += 1
            if rounds[number] % 50 == 0:
                torch.cuda.current_stream().synchronize()

    team = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in team:
        thread.start()
    time.sleep(0.5)
    begin = time.perf_counter()
    recordings = events = 0
    early = 0  # MiB after the first recordings: libraries are loaded, pools are filled
    losses: set[str] = set()
    while time.perf_counter() - begin < seconds:
        session = native.start(
            native.RecordOptions(cuda=True, cuda_detach=detach, memory=recordings % 2 == 0, shapes=recordings % 3 == 0)
        )
        time.sleep(0.03)
        if recordings % 4 == 1:
            session.pause_device()
            time.sleep(0.005)
            session.resume_device()
        session.stop()
        events += session.status().event_count
        losses |= {loss.reason for loss in session.losses}
        recordings += 1
        if recordings == 20:
            early = resident_mib()
    over.set()
    for thread in team:
        thread.join(timeout=30)
    alive = sum(thread.is_alive() for thread in team)
    memory = resident_mib()
    growth = (memory - early) / (recordings - 20) if recordings >= 60 else 0.0
    print(
        f"stress: {recordings} recordings, {events} events, {sum(rounds)} rounds of work, {alive} hanging threads, "
        f"{memory} MiB, {growth:.2f} MiB more per recording, losses {sorted(losses)}"
    )
    sys.exit(1 if alive or events == 0 or growth > 0.5 else 0)


if __name__ == "__main__":
    main()
