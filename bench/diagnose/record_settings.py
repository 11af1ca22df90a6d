"""Times and records the programs of kinds_settings.py with firelane.profiler, whose traces have notes and counters.

    python bench/diagnose/record_settings.py FOLDER [NAME ...] [--device cpu] [--limit 40]

Each kind (faulty, fixed) of each program runs in a process of its own. Writes NAME.KIND.lane, and true_steps.json as
record_all.py does; score_all.py reads the folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else deterministic products are refused

import torch
from torch.profiler import ProfilerActivity

import firelane.profiler
from gpu_models import Machine
from kinds_settings import ON_CPU, PROGRAMS

FORK = multiprocessing.get_context("fork")
WAIT, RECORDED, AFTER = 10, 4, 6  # steps
BLOCKS, STEPS = 5, 20


def timed(step: Any, on: Machine) -> list[float]:
    blocks = []
    for _ in range(BLOCKS):
        on.synchronize()
        start = time.perf_counter_ns()
        for _ in range(STEPS):
            step()
        on.synchronize()
        blocks.append((time.perf_counter_ns() - start) / STEPS)
    return blocks


def record(name: str, kind: str, device: str, folder: Path) -> None:
    on, program = Machine(device), PROGRAMS[name]
    if device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        step = program.make(on, kind == "faulty")
        for _ in range(4):
            step()
        with firelane.profiler.profile(
            activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on.is_gpu,
            schedule=firelane.profiler.schedule(wait=WAIT, warmup=1, active=RECORDED, repeat=1),
            record_shapes=True,
            profile_memory=True,
        ) as prof:
            for _ in range(WAIT + 1 + RECORDED + AFTER):
                step()
                prof.step()
        path = folder / f"{name}.{kind}.lane"
        path.unlink(missing_ok=True)
        prof.save(str(path))
        (folder / f"{name}.{kind}.steps").write_text(json.dumps(timed(step, on)))
    except Exception:
        (folder / f"{name}.{kind}.failed.txt").write_text(traceback.format_exc())
        print(traceback.format_exc(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--limit", type=float, default=40, help="seconds for one kind of a program")
    parser.add_argument("--seconds", type=float, default=500, help="start no more programs after that")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    truths: dict[str, Any] = {}
    for name in arguments.names or PROGRAMS:
        program = PROGRAMS[name]
        if (arguments.device == "cpu" and name not in ON_CPU) or time.monotonic() - began > arguments.seconds:
            continue
        blocks: dict[str, list[float]] = {}
        for kind in ("faulty", "fixed"):
            start = time.monotonic()
            process = FORK.Process(target=record, args=(name, kind, arguments.device, arguments.folder))
            process.start()
            process.join(arguments.limit)
            if process.is_alive():
                process.kill()
                process.join()
                print(f"{name}, {kind}: stopped after {arguments.limit:.0f} s", flush=True)
            times = arguments.folder / f"{name}.{kind}.steps"
            blocks[kind + "_ns"] = json.loads(times.read_text()) if times.exists() else []
            times.unlink(missing_ok=True)
            shown = [round(ns / 1e6, 2) for ns in blocks[kind + "_ns"]]
            print(f"{name}, {kind}: {time.monotonic() - start:.1f} s", shown, flush=True)
        truths[name] = {
            "half": "gains",
            "findings": program.findings,
            "near": program.near,
            "says": program.says,
            "saves_time": program.saves_time,
            "device": arguments.device,
            "torch": torch.__version__,
            **blocks,
        }
        (arguments.folder / "true_steps.json").write_text(json.dumps(truths, indent=1))


if __name__ == "__main__":
    main()
