"""Times and records programs with and without one planted fault each.

    python bench/diagnose/record_faults.py FOLDER [NAME ...]      # on a machine with an NVIDIA GPU
        --seconds 110       # start no more programs after that
        --recorder torch    # torch.profiler instead of firelane
        --device cpu        # small sizes, to try it where there is no GPU

Needs only firelane's recorder. Writes NAME.faulty.lane, NAME.fixed.lane, NAME.untimed.lane (with the fault, and
without steps that were timed unrecorded), HEALTHY.healthy.lane, and faults.json with the true steps: averages of
eight steps between two synchronizations, with and without the fault in turn, before and after the recordings.
faults.json is written after every program; a second run in the same folder continues with those that are missing, and
skips one that ended the process. bench/diagnose/score.py reads the folder.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/gpu"))

import torch
from torch.profiler import ProfilerActivity, profile, schedule

import gpu_memory
import gpu_programs
from gpu_models import MEMORY, Fault, Machine, Step
from record_both import load_recorder
from record_steps import record_steps

FAULTS = {**gpu_programs.FAULTS, **gpu_memory.FAULTS, **gpu_programs.COMPILED}
BLOCK = 8  # steps timed at a time
BEFORE, AFTER = 3, 2  # blocks
RECORDED = 8
TORCH_NAMES = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}


class Bench:
    def __init__(self, machine: Machine, recorder: str, folder: Path):
        self.on, self.folder = machine, folder
        self.native = load_recorder() if recorder == "firelane" else None
        self.ending = "lane" if self.native else "json.gz"

    def timed(self, step: Step) -> float:
        """ns per step, averaged over a block."""
        self.on.synchronize()
        start = time.perf_counter_ns()
        for _ in range(BLOCK):
            step()
        self.on.synchronize()
        return (time.perf_counter_ns() - start) / BLOCK

    def record(self, step: Step, name: str, flags: dict[str, bool], *, timed: bool = True) -> list[str]:
        path = self.folder / f"{name}.{self.ending}"
        if self.native:
            losses = record_steps(self.native, step, path, flags, recorded=RECORDED, cuda=self.on.is_gpu, timed=timed)
        else:
            losses = []
            options: dict[str, Any] = {TORCH_NAMES[flag]: True for flag in flags}
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                schedule=schedule(wait=1, warmup=2, active=RECORDED),
                on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
                **options,
            ) as prof:
                for _ in range(3 + RECORDED):
                    step()
                    prof.step()
        self.on.synchronize()
        return losses

    def warm(self, make) -> Step:
        torch.manual_seed(0)
        step = make()
        for _ in range(3):
            step()
        self.on.synchronize()
        return step

    def fault(self, name: str, fault: Fault) -> dict:
        entry: dict[str, Any] = {
            "finding": fault.finding or name,
            "saves_time": fault.saves_time,
            "flags": sorted(fault.flags),
            "faulty_ns": [],
            "fixed_ns": [],
            "losses": [],
        }

        def run(**steps: Step) -> None:  # by kind
            def time_all(blocks: int) -> None:
                for _ in range(blocks):
                    for kind, step in steps.items():
                        entry[kind + "_ns"].append(self.timed(step))

            time_all(BEFORE)
            for kind, step in steps.items():
                entry["losses"] += self.record(step, f"{name}.{kind}", fault.flags)
                if kind == "faulty" and self.native and fault.saves_time:
                    entry["losses"] += self.record(step, f"{name}.untimed", fault.flags, timed=False)
            time_all(AFTER)

        kinds = {"faulty": lambda: fault.make(self.on, True), "fixed": lambda: fault.make(self.on, False)}
        if fault.alone:
            for kind, make in kinds.items():
                run(**{kind: self.warm(make)})
                self.clear()
        else:
            run(**{kind: self.warm(make) for kind, make in kinds.items()})
        return entry

    def healthy(self, name: str, make) -> dict:
        step = self.warm(lambda: make(self.on))
        before = [self.timed(step) for _ in range(BEFORE)]
        losses = self.record(step, f"{name}.healthy", MEMORY)
        return {"healthy_ns": before + [self.timed(step) for _ in range(AFTER)], "losses": losses}

    def clear(self) -> None:
        gc.collect()
        gc.freeze()  # so that a collection only costs what the program itself allocates, not everything imported
        self.on.synchronize()
        self.on.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--recorder", choices=("firelane", "torch"), default="firelane")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_intermixed_args()
    began = time.monotonic()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(Machine(arguments.device), arguments.recorder, arguments.folder)
    results = arguments.folder / "faults.json"
    device = torch.cuda.get_device_name() if bench.on.is_gpu else "cpu"
    truth: dict[str, Any] = {"torch": torch.__version__, "device": device, "ending": bench.ending}
    truth |= {"faults": {}, "healthy": {}}
    if results.exists():
        truth = json.loads(results.read_text())

    work = [("faults", name, lambda name=name, fault=fault: bench.fault(name, fault)) for name, fault in FAULTS.items()]
    work += [
        ("healthy", name, lambda name=name, make=make: bench.healthy(name, make))
        for name, make in gpu_programs.HEALTHY.items()
    ]
    for kind, name, run in work:
        late = time.monotonic() - began > arguments.seconds
        if name in truth[kind] or late or (arguments.names and name not in arguments.names):
            continue
        truth[kind][name] = {"failed": "ended the process"}
        results.write_text(json.dumps(truth, indent=1))
        start = time.monotonic()
        try:
            truth[kind][name] = run()
        except Exception:
            truth[kind][name] = {"failed": traceback.format_exc()}
        results.write_text(json.dumps(truth, indent=1))
        shown = {
            key: [round(ns / 1e6, 2) for ns in value] if key.endswith("_ns") else value
            for key, value in truth[kind][name].items()
            if key.endswith("_ns") or (key in ("failed", "losses") and value)
        }
        print(f"{name} {time.monotonic() - start:.1f} s", shown, flush=True)
        bench.clear()


if __name__ == "__main__":
    main()
