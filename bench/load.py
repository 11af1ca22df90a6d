#!/usr/bin/env python3
"""How fast a trace is loaded into a model, compared with other tools on the same file in the same run.

    bench/load.py [TRACE] [--repeat 5] [--large MB] [--write]

TRACE is a .json or .json.gz; both formats are measured (the other one is created in build/bench). The default is the
73 MB trace next to the repository if it exists, otherwise tests/data/gpt_full.json.gz. --large creates a trace of
that size from TRACE and measures it too. --write puts the table into bench/README.md. Each result is the best of
--repeat processes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build/bench"
BINARY = ROOT / "build/release/bench"
HTA_VENV = ROOT / "build/bench-venv"
HTA_PACKAGE = "HolisticTraceAnalysis==0.5.0"
DEFAULT_INPUTS = [ROOT / "../shared/traces/llm_generate.json.gz", ROOT / "tests/data/gpt_full.json.gz"]


@dataclass
class Row:
    what: str
    file: str
    seconds: float
    content_bytes: int
    peak_mib: float | None

    def text(self) -> str:
        speed = f"{self.content_bytes / 1e6 / self.seconds:,.0f} MB/s" if self.content_bytes else ""
        peak = f"{self.peak_mib:,.0f} MiB" if self.peak_mib else ""
        return f"| {self.what} | {self.file} | {self.seconds * 1000:,.1f} ms | {speed} | {peak} |"


def both_formats(trace: Path) -> tuple[Path, Path]:
    """The trace as .json and as .json.gz; the missing one is created in build/bench."""
    WORK.mkdir(parents=True, exist_ok=True)
    if trace.name.endswith(".gz"):
        plain = WORK / trace.name.removesuffix(".gz")
        with gzip.open(trace, "rb") as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        return plain, trace
    packed = WORK / (trace.name + ".gz")
    with open(trace, "rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    return trace, packed


def best_of(repeat: int, command: list[str | Path]) -> dict[str, float]:
    """The shortest time of each kind over all runs, and the highest peak."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{command[0]} failed")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    best = {key: min(run[key] for run in runs) for key in runs[0] if key.endswith("seconds")}
    return best | {"peak_mib": max(run.get("peak_mib", 0) for run in runs)}


def python_with(module: str, packages: list[str], folder: Path) -> Path | None:
    """The Python of a venv with `module`, created if needed; None, with a reason on stderr, if that fails."""
    python = folder / "bin/python"
    if (
        python.exists()
        and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
    ):
        return python
    print(f"bench: installing {', '.join(packages)} into {folder}", file=sys.stderr)
    venv.create(folder, with_pip=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"bench: {module} skipped: pip could not install it: {why}", file=sys.stderr)
        return None
    return python


def hta_python() -> Path | None:
    return python_with("hta", [HTA_PACKAGE], HTA_VENV)


def measure(trace: Path, repeat: int) -> list[Row]:
    plain, packed = both_formats(trace)
    content_bytes = plain.stat().st_size
    rows = []

    def add(what: str, file: Path, command: list[str | Path], times: int = repeat) -> dict[str, float]:
        print(f"bench: {what} {file.name}", file=sys.stderr)
        best = best_of(times, command)
        rows.append(Row(what, file.name, best["seconds"], content_bytes, best["peak_mib"]))
        return best

    load = BINARY / "bench_load"
    add("firelane, file to model", plain, [load, "firelane", plain])
    add("firelane, file to model", packed, [load, "firelane", packed])
    add("firelane, one thread", plain, [load, "firelane", plain, "1"])
    add("simdjson on-demand alone, in memory", plain, [load, "simdjson", plain])
    add("ISA-L inflate alone, in memory", packed, [load, "inflate", packed])
    add("Python json.load", plain, [sys.executable, ROOT / "bench/peers.py", "json", plain], times=2)
    python = hta_python()
    if python:
        try:
            add("HolisticTraceAnalysis", packed, [python, ROOT / "bench/peers.py", "hta", packed.resolve()], times=2)
        except RuntimeError as error:
            print(f"bench: HTA skipped: {error}", file=sys.stderr)
    print("bench: analyses", file=sys.stderr)
    best = best_of(repeat, [load, "analyses", plain])
    rows += [
        Row(f"firelane {name}, after loading", plain.name, best[f"{name}_seconds"], 0, None)
        for name in ("ops", "kernels")
    ]
    return rows


def measure_large(trace: Path, megabytes: int, repeat: int) -> list[Row]:
    large = WORK / f"{trace.name.split('.')[0]}_{megabytes}MB.json"
    if not large.exists():
        subprocess.run([BINARY / "make_trace", trace, large, str(megabytes)], check=True, stdout=sys.stderr)
    load = BINARY / "bench_load"
    best = best_of(repeat, [load, "firelane", large])
    rows = [Row("firelane, file to model", large.name, best["seconds"], large.stat().st_size, best["peak_mib"])]
    analyses = best_of(1, [load, "analyses", large])
    rows += [
        Row(f"firelane {name}, after loading", large.name, analyses[f"{name}_seconds"], 0, None)
        for name in ("ops", "kernels")
    ]
    return rows


def machine() -> str:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores, {cpu[1] if cpu else platform.machine()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--large", type=int, metavar="MB")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    args = parser.parse_args()
    trace = (args.trace or next(path for path in DEFAULT_INPUTS if path.exists())).resolve()

    rows = measure(trace, args.repeat)
    if args.large:
        rows += measure_large(trace, args.large, args.repeat)
    table = "\n".join(
        [
            f"{machine()}; best of {args.repeat} (Python: of 2), clang 19 -O3",
            "",
            "| what | file | time | content per second | peak memory |",
        ]
        + ["|---|---|--:|--:|--:|"]
        + [row.text() for row in rows]
    )
    print(table)
    if args.write:
        readme.write("load.py", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
