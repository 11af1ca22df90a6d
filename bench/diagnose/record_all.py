"""Times and records the programs of library.py, with their fault and mended, under firelane and torch.profiler.

    python bench/diagnose/record_all.py FOLDER [NAME ...]      # on a machine with an NVIDIA GPU
        --seconds 500      # start no more programs after that
        --older            # the programs of gpu_programs.py instead
        --unseen           # those of kinds_unseen.py instead
        --blind            # those of kinds_blind.py; --late: of kinds_late.py; --fresh, --next, --sealed, --asked,
                           # --merged, --shipped, --common: likewise
        --gains            # those of kinds_gains.py, which gains are fitted with
        --ours             # no traces of torch.profiler
        --device cpu       # small sizes, one thread
        --jobs 7           # programs at a time: only for a CPU with more cores than that
        --blocks 5         # of steps timed before recording, of each kind in turn; more on a machine that is not idle

Each program runs in a process of its own with a time limit, so that one failure costs no other program; one that needs
a library that is missing here is left out, with a line that says so. Traces are compressed when all have run.
Needs only firelane's recorder. Writes, for KIND faulty and fixed (programs without a fault: only fixed):

    NAME.KIND.lane                              firelane: shapes, memory, tensors; steps before and after only timed
    NAME.KIND.plain.json.xz, .memory., .stacks. torch.profiler with no flags; shapes and memory; and stacks and modules
    NAME.truth.json                             ns a step without any recorder: averages of blocks of steps between two
                                                synchronizations, both kinds in turn, before any recorder was loaded and
                                                after firelane's was taken out

and true_steps.json with all of the last. score_all.py reads the folder.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import multiprocessing
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/gpu"))

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from gpu_models import Machine
from library import (
    ASKED,
    BLIND,
    COMMON,
    EVERY,
    FRESH,
    GAINS,
    LATE,
    LIBRARY,
    MERGED,
    NEXT,
    OLDER,
    ON_GPU_ONLY,
    SEALED,
    SHIPPED,
    UNSEEN,
    half_of,
)
from record_both import load_recorder
from record_steps import record_steps

FORK = multiprocessing.get_context("fork")  # torch is loaded once; nothing here touches CUDA before a program runs
AFTER = 2  # blocks of steps timed after recording
BLOCK_SECONDS, MOST_STEPS = 0.12, 40
UNALIGNED = 2  # of a program whose steps come in rounds: a lane then starts here, so that its slow step is not recorded
TORCH_FLAGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "memory": {"record_shapes": True, "profile_memory": True},
    "stacks": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True},
}


def say(*words: object) -> None:
    print(*words, flush=True)


class Counted:
    """A step function that knows how often it ran."""

    def __init__(self, step):
        self.step, self.calls = step, 0

    def __call__(self):
        self.calls += 1
        return self.step()

    def until(self, rest: int, block: int) -> None:
        while self.calls % block != rest % block:
            self()


class Bench:
    def __init__(self, name: str, device: str, folder: Path, torch_flags: dict[str, dict[str, Any]], blocks: int):
        self.torch_flags, self.blocks = torch_flags, blocks
        if device == "cpu":
            torch.set_num_threads(1)
        self.native = load_recorder()
        self.name, self.on, self.folder = name, Machine(device), folder
        self.program = EVERY[name]
        self.truth: dict[str, Any] = {
            "half": half_of(name),
            "findings": self.program.findings,
            "near": self.program.near,
            "where": self.program.where,
            "says": self.program.says,
            "saves_time": self.program.saves_time,
            "device": device,
            "faulty_ns": [],
            "fixed_ns": [],
        }

    def make(self, fault: bool) -> Counted:
        torch.manual_seed(0)
        step = Counted(self.program.make(self.on, fault))
        for _ in range(4):
            step()
        self.on.synchronize()
        return step

    def timed(self, step: Counted, steps: int) -> float:
        if self.program.block == 1:
            step()  # whatever the other kind did to the allocator's cache is no part of this one
        step.until(0, self.program.block)
        self.on.synchronize()
        start = time.perf_counter_ns()
        for _ in range(steps):
            step()
        self.on.synchronize()
        return (time.perf_counter_ns() - start) / steps

    def steps_of(self, step: Counted) -> int:
        one = self.timed(step, self.program.block)
        steps = min(MOST_STEPS, max(4, int(BLOCK_SECONDS * 1e9 / one)))
        return -(-steps // self.program.block) * self.program.block

    def with_firelane(self, step: Counted, kind: str) -> list[str]:
        recorded = self.program.recorded
        step.until(UNALIGNED, self.program.block)
        path = self.folder / f"{self.name}.{kind}.lane"
        flags = {
            "shapes": True,
            "memory": True,
            "tensors": True,
            "lines": True,
            **self.program.flags,
        }  # as firelane record does
        return record_steps(self.native, step, path, flags, recorded=recorded, cuda=self.on.is_gpu)

    def with_torch(self, step: Counted, kind: str, options: str) -> None:
        path = self.folder / f"{self.name}.{kind}.{options}.json"
        recorded = self.program.recorded - 1 if self.program.block == 1 else self.program.recorded
        recorded = recorded if options == "plain" or self.program.block > 1 else 2
        step.until(0, self.program.block)
        with profile(
            activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.on.is_gpu,
            schedule=schedule(wait=1, warmup=2, active=recorded, repeat=1),
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
            **TORCH_FLAGS[options],
        ) as prof:
            for _ in range(3 + recorded):
                step()
                prof.step()
        self.on.synchronize()

    def run(self) -> None:
        kinds = {"faulty": self.make(True)} if self.program.findings else {}
        kinds["fixed"] = self.make(False)
        steps = {kind: self.steps_of(step) for kind, step in kinds.items()}

        def time_all(blocks: int) -> None:
            for _ in range(blocks):
                for kind, step in kinds.items():
                    self.truth[kind + "_ns"].append(self.timed(step, steps[kind]))

        time_all(self.blocks)
        self.truth["losses"] = [loss for kind, step in kinds.items() for loss in self.with_firelane(step, kind)]
        time_all(AFTER)
        self.truth["torch"] = torch.__version__
        self.truth["machine"] = torch.cuda.get_device_name() if self.on.is_gpu else "cpu, one thread"
        (self.folder / f"{self.name}.truth.json").write_text(json.dumps(self.truth, indent=1))
        for kind, step in kinds.items():
            for options in self.torch_flags:
                self.with_torch(step, kind, options)


def compress(path: Path) -> None:
    path.with_suffix(".json.xz").write_bytes(lzma.compress(path.read_bytes(), preset=6))
    path.unlink()


def one(name: str, arguments: argparse.Namespace) -> None:
    start = time.monotonic()
    folder = arguments.folder
    bench = Bench(name, arguments.device, folder, {} if arguments.ours else TORCH_FLAGS, arguments.blocks)
    try:
        bench.run()
    except Exception:
        (folder / f"{name}.failed.txt").write_text(traceback.format_exc())
        raise
    shown = {kind: [round(ns / 1e6, 2) for ns in bench.truth[kind + "_ns"]] for kind in ("faulty", "fixed")}
    say(f"{name} {time.monotonic() - start:.1f} s", shown, bench.truth["losses"] or "")


def with_libraries(names: list[str]) -> list[str]:
    """Those whose libraries are here; says which are not."""
    missing = {name: EVERY[name].missing() for name in names}
    for name, libraries in missing.items():
        if libraries:
            say(f"{name}: skipped, no {', '.join(libraries)} here")
    return [name for name in names if not missing[name]]


def run_all(names: list[str], arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    running: dict[str, tuple[Any, float]] = {}
    while names or running:
        for name, (process, start) in list(running.items()):
            if process.is_alive() and time.monotonic() - start > arguments.limit:
                process.kill()
                process.join()
                say(f"{name}: stopped after {arguments.limit:.0f} s")
            if not process.is_alive():
                process.join()
                if process.exitcode != 0:
                    say(f"{name}: failed, exit code {process.exitcode}")
                del running[name]
        while names and len(running) < arguments.jobs and time.monotonic() - began < arguments.seconds:
            name = names.pop(0)
            process = FORK.Process(target=one, args=(name, arguments))
            process.start()
            running[name] = process, time.monotonic()
        if not running:
            break
        time.sleep(0.05)
    for name in names:
        say(f"{name}: not started, no time was left")


def finish(folder: Path) -> None:
    with FORK.Pool() as pool:
        pool.map(compress, list(folder.glob("*.*.*.json")), chunksize=1)
    truths = {
        path.name.removesuffix(".truth.json"): json.loads(path.read_text()) for path in folder.glob("*.truth.json")
    }
    (folder / "true_steps.json").write_text(json.dumps(dict(sorted(truths.items())), indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--limit", type=float, default=60, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=5)
    sets = {
        "older": OLDER,
        "unseen": UNSEEN,
        "blind": BLIND,
        "late": LATE,
        "fresh": FRESH,
        "next": NEXT,
        "sealed": SEALED,
        "asked": ASKED,
        "merged": MERGED,
        "shipped": SHIPPED,
        "common": COMMON,
        "gains": GAINS,
    }
    for each in sets:
        parser.add_argument(f"--{each}", action="store_true")
    parser.add_argument("--ours", action="store_true")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_intermixed_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    chosen = next((programs for each, programs in sets.items() if getattr(arguments, each)), LIBRARY)
    names = arguments.names or list(chosen)
    if arguments.device == "cpu":
        names = [name for name in names if name not in ON_GPU_ONLY]
    names = with_libraries(names)
    gc.collect()
    gc.freeze()  # a collection in a program then costs what that program allocates
    run_all(names, arguments)
    finish(arguments.folder)


if __name__ == "__main__":
    main()
