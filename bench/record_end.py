#!/usr/bin/env python3
"""What a recording costs when it ends, and in memory and disk: firelane against torch.profiler.

    .venv/bin/python bench/record_end.py                      # a million ops; minutes, most of them torch's
    .venv/bin/python bench/record_end.py --ops 100000 --write # updates the table in bench/README.md

Both record the same loop of `x.add_(1)` with the same flags, each in a fresh process. Times are
from leaving the recorded block: to the printed table, and to the written Chrome trace. Memory is
the growth of the resident set from before the block to its end. The loop alone is subtracted nowhere.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "shapes+memory+stack": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(which: str, flags: dict[str, bool], ops: int, question: str) -> dict[str, float]:
    """Runs in a process of its own: records, then answers one question."""
    import torch

    sys.path.insert(0, str(ROOT / "python"))
    if which == "firelane":
        from firelane.profiler import profile
    else:
        from torch.profiler import profile

    x = torch.ones(8)
    with profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags):  # what is only slow the first time
        x.add_(1)
    before = resident_bytes()
    prof = profile(activities=[torch.profiler.ProfilerActivity.CPU], **flags)
    with tempfile.TemporaryDirectory() as folder:
        prof.__enter__()
        for _ in range(ops):
            x.add_(1)
        grown = resident_bytes() - before
        begin = time.perf_counter()
        prof.__exit__(None, None, None)
        if question == "table":
            prof.key_averages().table(sort_by="self_cpu_time_total")
            return {"seconds": time.perf_counter() - begin, "grown_bytes": grown}
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path + (".gz" if question == "gz" else ""))
        seconds = time.perf_counter() - begin
        size = os.path.getsize(path + (".gz" if question == "gz" else ""))
        result = {"seconds": seconds, "chrome_bytes": size}
        if which == "firelane":
            result["events"] = len(prof.trace.host_slices)
            prof.save(os.path.join(folder, "trace.lane"))
            result["lane_bytes"] = os.path.getsize(os.path.join(folder, "trace.lane"))
        return result


def measured(which: str, flags: str, ops: int, question: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", which, flags, str(ops), question], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{which} {flags} {question} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows(ops: int, names: list[str]) -> list[list[str]]:
    table = []
    for flags in names:
        both = {
            question: (measured("torch", flags, ops, question), measured("firelane", flags, ops, question))
            for question in ("table", "json", "gz")
        }
        for question, title in (("table", "stop, table"), ("json", "stop, Chrome .json"), ("gz", "stop, Chrome .json.gz")):
            theirs, ours = (r["seconds"] for r in both[question])
            table.append([flags, title, f"{theirs:.2f} s", f"{ours:.3f} s", f"{theirs / ours:.0f}x"])
        theirs, ours = (r["grown_bytes"] / 2**20 for r in both["table"])
        table.append([flags, "memory growth", f"{theirs:.0f} MiB", f"{ours:.0f} MiB", f"{theirs / max(ours, 1):.0f}x"])
        last = both["gz"][1]
        theirs, ours = both["gz"][0]["chrome_bytes"] / last["events"], last["lane_bytes"] / last["events"]
        table.append([flags, "bytes an event, .json.gz / .lane", f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}x"])
    return table


def markdown(table: list[list[str]], ops: int) -> str:
    lines = [f"{ops:,} ops.", "", "| flags | what | torch.profiler | firelane | ratio |", "|---|---|--:|--:|--:|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in table])


def write_into_readme(text: str) -> None:
    readme = ROOT / "bench" / "README.md"
    begin, end = "<!-- record_end.py begin -->", "<!-- record_end.py end -->"
    before, rest = readme.read_text().split(begin)
    readme.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end)[1])


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        which, flags, ops, question = sys.argv[2:]
        print(json.dumps(measure(which, FLAGS[flags], int(ops), question)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--flags", nargs="*", choices=FLAGS, default=list(FLAGS))
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    arguments = parser.parse_args()
    text = markdown(rows(arguments.ops, arguments.flags), arguments.ops)
    print(text)
    if arguments.write:
        write_into_readme(text)


if __name__ == "__main__":
    main()
