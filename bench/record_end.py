#!/usr/bin/env python3
"""What a recording costs at its end, in memory and on disk: firelane against torch.profiler.

    .venv/bin/python bench/record_end.py                      # a million ops; takes minutes, most of them for torch
    .venv/bin/python bench/record_end.py --ops 100000 --write # updates the table in bench/README.md

Both record the same loop of `x.add_(1)` with the same flags, each in a fresh process. Times are from leaving the
recorded block to the table as text, and to the written Chrome trace. Memory is the growth of the resident set during
the block. torch.profiler runs once because it takes minutes; firelane's result is the best of three runs because a
busy machine disturbs short times most.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import readme

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes+memory+stack": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(which: str, flags: dict[str, bool], ops: int) -> dict[str, float]:
    """Runs in a process of its own."""
    import torch

    sys.path.insert(0, str(ROOT / "python"))
    profile = import_module("firelane.profiler" if which == "firelane" else "torch.profiler").profile
    x = torch.ones(8)
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags):  # warm-up
        x.add_(1)
    before = resident_bytes()
    prof = profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags)
    with tempfile.TemporaryDirectory() as folder:
        chrome, lane = f"{folder}/trace.json", f"{folder}/trace.lane"
        prof.__enter__()
        for _ in range(ops):
            x.add_(1)
        result: dict[str, float] = {"grown_bytes": resident_bytes() - before}
        stop_s = timed(lambda: prof.__exit__(None, None, None))
        result["chrome_s"] = stop_s + timed(lambda: prof.export_chrome_trace(chrome))
        # firelane has already read the file for the export; torch shares nothing between the two
        shared_s = timed(lambda: firelane_open(prof)) if which == "firelane" else 0.0
        result["table_s"] = stop_s + shared_s + timed(lambda: prof.key_averages().table(sort_by="self_cpu_time_total"))
        result["gz_bytes"] = len(gzip.compress(Path(chrome).read_bytes(), 6))
        if which == "firelane":
            result["events"] = len(prof.trace.host_slices) + len(prof.trace.memory_events)
            prof.save(lane)
            result["lane_bytes"] = Path(lane).stat().st_size
        return result


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def firelane_open(prof: Any) -> object:
    import firelane

    return firelane.open(prof.profiler.path)


def measured(which: str, flags: str, ops: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", which, flags, str(ops)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{which} {flags} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows(ops: int, names: list[str]) -> list[list[str]]:
    table = []
    for flags in names:
        theirs = measured("torch", flags, ops)
        runs = [measured("firelane", flags, ops) for _ in range(3)]
        ours = min(runs, key=lambda run: run["table_s"] + run["chrome_s"])
        for key, title in (("table_s", "stop, table"), ("chrome_s", "stop, Chrome .json")):
            a, b = theirs[key], ours[key]
            table.append([flags, title, f"{a:.2f} s", f"{b:.3f} s", f"{a / b:.1f}x"])
        a, b = theirs["grown_bytes"] / 2**20, ours["grown_bytes"] / 2**20
        table.append([flags, "memory growth while recording", f"{a:.0f} MiB", f"{b:.0f} MiB", f"{a / max(b, 1):.0f}x"])
        a, b = theirs["gz_bytes"] / ours["events"], ours["lane_bytes"] / ours["events"]
        table.append([flags, "bytes per event, .json.gz and .lane", f"{a:.1f}", f"{b:.1f}", f"{a / b:.1f}x"])
    return table


def markdown(table: list[list[str]], ops: int) -> str:
    lines = [
        f"{ops:,} calls of `x.add_(1)`, five ops each.",
        "",
        "| flags | what | torch.profiler | firelane | ratio |",
        "|---|---|--:|--:|--:|",
    ]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in table])


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        which, flags, ops = sys.argv[2:]
        print(json.dumps(measure(which, FLAGS[flags], int(ops))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--flags", nargs="*", choices=FLAGS, default=list(FLAGS))
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    arguments = parser.parse_args()
    text = markdown(rows(arguments.ops, arguments.flags), arguments.ops)
    print(text)
    if arguments.write:
        readme.write("record_end.py", text)


if __name__ == "__main__":
    main()
