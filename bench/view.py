#!/usr/bin/env python3
"""How fast `firelane view` shows a large trace and navigates in it: the server's side, and the page's.

    bench/view.py [TRACE] [--mb 1000] [--steps 400] [--page-steps 200] [--write]

TRACE is a .json or .json.gz from which a trace of --mb megabytes is created (and kept in build/bench); the default is
the 73 MB trace next to the repository if it exists, otherwise tests/data/gpt_full.json.gz. Measured are the times
from starting the command to the address, to the loaded trace and to the first screen of tiles; the response times of
a random walk of zooms and pans over all lanes, as a page 1,600 pixels wide would request them (one request per step:
the tiles that became visible); and the server's memory. Then the same trace in a browser (view_browser.mjs). --write
puts the tables into bench/README.md. The file is read once before, so that it is in the page cache.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import readme

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build/bench"
BINARY = ROOT / "build/release/firelane"
MAKE_TRACE = ROOT / "build/release/bench/make_trace"
DEFAULT_INPUTS = [ROOT / "../shared/traces/llm_generate.json.gz", ROOT / "tests/data/gpt_full.json.gz"]
PIXELS = 1600
BINS_PER_TILE = 512
MAX_TILES = 16


def make_large(trace: Path, megabytes: int) -> Path:
    WORK.mkdir(parents=True, exist_ok=True)
    large = WORK / f"{trace.name.removesuffix('.gz').removesuffix('.json')}_{megabytes}MB.json"
    if not large.exists():
        subprocess.run([MAKE_TRACE, trace, large, str(megabytes)], check=True, stdout=subprocess.DEVNULL)
    with open(large, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return large


class Server:
    def __init__(self, trace: Path):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [BINARY, "view", trace, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        self.address_s = self.age()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\w+)", url)
        if match is None:
            sys.exit(f"firelane view printed no address: {url!r}")
        self.connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=120)
        self.headers = {"X-Firelane-Token": match[2]}

    def age(self) -> float:
        return time.perf_counter() - self.started

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {content[:200]!r}")
        return content

    def json(self, path: str) -> dict:
        return json.loads(self.get(path))

    def wait_until_ready(self) -> None:
        while (state := self.json("/api/traces")["traces"][0]["state"]) == "loading":
            time.sleep(0.01)
        if state != "ready":
            sys.exit("the trace could not be loaded")

    def memory_mib(self, field: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{field}:")[1].split()[0]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def level_for(span_ns: float) -> int:
    """The level whose bin is at most a pixel."""
    level = 0
    while 2 ** (level + 1) <= span_ns / PIXELS:
        level += 1
    return level


def tiles_path(view: tuple[float, float], lanes: str) -> tuple[str, int]:
    level = level_for(view[1] - view[0])
    span = BINS_PER_TILE * 2**level
    first = int(view[0] // span)
    count = min(MAX_TILES, int(view[1] // span) - first + 1)
    return f"/api/t/0/tiles?level={level}&first={first}&count={count}&lanes={lanes}", count


def next_view(view: tuple[float, float], end_ns: float, rng: random.Random) -> tuple[float, float]:
    """Zooms in or out around a point, or pans; occasionally jumps."""
    span = view[1] - view[0]
    kind = rng.random()
    if kind < 0.05:
        start, span = rng.random() * end_ns, 10 ** rng.uniform(4, 9)
    elif kind < 0.4:
        start = view[0] + span * rng.uniform(-0.7, 0.7)
    else:
        factor = rng.choice([0.5, 0.5, 0.7, 1.5, 2.0])
        at = view[0] + span * rng.random()
        start, span = at - (at - view[0]) * factor, span * factor
    span = min(max(span, 2000.0), end_ns)
    start = min(max(0.0, start), end_ns - span)
    return start, start + span


def walk(server: Server, lanes: dict, steps: int) -> tuple[list[float], list[float], list[int]]:
    """Milliseconds per response, the same per tile and lane, and bytes per response."""
    rng = random.Random(4)
    shown = lanes["lanes"][:64]
    ids = ",".join(str(lane["id"]) for lane in shown)
    view = (0.0, float(lanes["end_ns"]))
    answers, tiles, sizes = [], [], []
    for _ in range(steps):
        path, count = tiles_path(view, ids)
        before = time.perf_counter()
        size = len(server.get(path))
        answers.append((time.perf_counter() - before) * 1000)
        tiles.append(answers[-1] / (count * len(shown)))
        sizes.append(size)
        view = next_view(view, float(lanes["end_ns"]), rng)
    return answers, tiles, sizes


def quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def kib(size: float) -> str:
    return f"{size / 1024:,.0f} KiB"


def mib(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"


def measure(trace: Path, steps: int) -> list[str]:
    server = Server(trace)
    try:
        server.wait_until_ready()
        ready_s = server.age()
        lanes = server.json("/api/t/0/lanes")
        lanes_s = server.age()
        ids = ",".join(str(lane["id"]) for lane in lanes["lanes"][:64])
        server.get(tiles_path((0.0, float(lanes["end_ns"])), ids)[0])
        first_s = server.age()
        memory = server.memory_mib("VmRSS")
        answers, tiles, sizes = walk(server, lanes, steps)
        after_walk = server.memory_mib("VmRSS")
        before = time.perf_counter()
        server.get("/api/t/0/overview")
        overview_s = time.perf_counter() - before
    finally:
        server.stop()
    slices = sum(lane["slices"] for lane in lanes["lanes"])
    rows = sum(lane["rows"] for lane in lanes["lanes"])
    shown, size = len(lanes["lanes"]), f"{trace.stat().st_size / 1e6:,.0f} MB"
    return [
        f"{os.cpu_count()} cores, {platform.machine()}; {size}, {slices:,} slices on {shown} lanes of {rows} rows",
        "",
        "| what | figure | goal |",
        "|---|--:|--:|",
        f"| command to address | {server.address_s:.2f} s | |",
        f"| command to trace ready | {ready_s:.2f} s | |",
        f"| command to lanes | {lanes_s:.2f} s | |",
        f"| command to first screen of tiles | {first_s:.2f} s | 3 s |",
        f"| one screen of tiles, all lanes: p50 | {quantile(answers, 0.5):.2f} ms | |",
        f"| one screen of tiles, all lanes: p99 | {quantile(answers, 0.99):.2f} ms | 16 ms |",
        f"| one screen of tiles, all lanes: longest of {steps} | {max(answers):.2f} ms | |",
        f"| one tile of one lane: p99 | {quantile(tiles, 0.99):.3f} ms | |",
        f"| bytes of one screen: p50, p99 | {kib(quantile(sizes, 0.5))}, {kib(quantile(sizes, 0.99))} | |",
        f"| server's memory, after the first screen | {memory:,.0f} MiB | |",
        f"| server's memory, after the walk | {after_walk:,.0f} MiB | |",
        f"| overview with its verdict, asked after the walk | {overview_s:.2f} s | |",
    ]


def measure_page(trace: Path, steps: int) -> list[str]:
    """The page's table; one line that says so if Node or Chromium is missing."""
    try:
        done = subprocess.run(
            ["node", ROOT / "bench/view_browser.mjs", trace, str(steps)], check=True, stdout=subprocess.PIPE, text=True
        )
    except FileNotFoundError:
        return ["The page was not measured: node is missing."]
    page = json.loads(done.stdout)
    if "skipped" in page:
        return [f"The page was not measured: {page['skipped']}."]
    firsts = sorted(page["firstPicturesS"])
    median = firsts[len(firsts) // 2]
    lines = [
        f"{page['browser']}, headless, no GPU, started before the clock; 1,600 x 900 pixels",
        "",
        "| what | figure | goal |",
        "|---|--:|--:|",
        f"| command to first picture of the timeline, median of {len(firsts)} | {median:.2f} s | 3 s |",
        f"| command to first picture of the timeline, longest | {firsts[-1]:.2f} s | |",
        *(
            f"| heap and array buffers, after {memory['after']} | {mib(memory['heap'])} + {mib(memory['buffers'])} | |"
            for memory in page["memories"]
        ),
    ]
    for pan in page["pans"]:
        what = f"panning, {pan['shown']} on the screen"
        lines += [
            f"| {what}: frames a second | {pan['frames'] / pan['seconds']:.0f} | 60 |",
            f"| {what}: between frames, median, p95 | {pan['medianMs']:.1f} ms, {pan['p95Ms']:.1f} ms | |",
            f"| {what}: frames over 33 ms | {pan['longShare']:.1%} of {pan['frames']} | |",
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--page-steps", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    for binary in (BINARY, MAKE_TRACE):
        if not binary.exists():
            build = "make build && cmake --build build/release --target make_trace"
            sys.exit(f"{binary.relative_to(ROOT)} is not built: {build}")
    trace = args.trace or next(path for path in DEFAULT_INPUTS if path.exists())
    large = make_large(trace, args.mb)
    lines = [*measure(large, args.steps), "", *measure_page(large, args.page_steps)]
    print("\n".join(lines))
    if args.write:
        readme.write("view.py", "\n".join(lines))


if __name__ == "__main__":
    main()
