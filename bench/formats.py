"""How fast other tools' files open, and in how much memory: makes one of each, 100 MB, and times `firelane lanes`.

    python bench/formats.py build/release/firelane --write

Beside the SQLite file stands what SQLite itself needs to visit the same rows and columns (one aggregate over each
table). Times are the best of five, of the clock and of the processor, which holds on a busy machine as well; memory is
the peak of the whole program.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import pickle
import resource
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import readme


def varint(number: int) -> bytes:
    out = bytearray()
    while True:
        byte = number & 127
        number >>= 7
        if not number:
            out.append(byte)
            return bytes(out)
        out.append(byte | 128)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def piece(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


CATEGORIES = [b"convolution fusion", b"loop fusion", b"data formatting", b"custom-call"]


def make_xplane(path: Path, size: int) -> None:
    """A TPU with four cores' worth of ops: each event has its name, times and two stats, as real ones do."""
    names = b""
    for i in range(1, 200):
        meta = number(1, i) + piece(2, b"%%fusion.%d = f32[1024]{0} fusion(...)" % i) + piece(4, b"fusion.%d" % i)
        meta += piece(5, number(1, 1) + piece(5, CATEGORIES[i % len(CATEGORIES)]))
        meta += piece(5, number(1, 2) + number(4, i << 20)) + piece(5, number(1, 3) + number(4, i * 4096))
        names += piece(4, number(1, i) + piece(2, meta))
    for i, name in enumerate(
        [b"hlo_category", b"flops", b"bytes_accessed", b"device_offset_ps", b"device_duration_ps"], 1
    ):
        names += piece(5, number(1, i) + piece(2, number(1, i) + piece(2, name)))
    with path.open("wb") as out:
        written = 0
        device = 0
        while written < size:
            events = bytearray()
            at = 1 << 40
            for i in range(250_000):
                duration = 2_000_000 + i % 977 * 1000
                stats = piece(4, number(1, 4) + number(4, at)) + piece(4, number(1, 5) + number(4, duration))
                events += piece(4, number(1, i % 199 + 1) + number(2, at) + number(3, duration) + stats)
                at += duration + 1_000_000
            line = number(1, 3) + piece(2, b"XLA Ops") + bytes(events)
            written += out.write(
                piece(1, number(1, device) + piece(2, b"/device:TPU:%d" % device) + piece(3, line) + names)
            )
            device += 1


KERNEL = ", ".join(
    f"{name} INTEGER"
    for name in (
        "start end deviceId contextId streamId correlationId globalPid demangledName shortName mangledName "
        "registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory "
        "localMemoryPerThread localMemoryTotal gridId graphNodeId graphId"
    ).split()
)


def make_nsight(path: Path, size: int) -> None:
    """Kernels, calls and ranges in the proportions of a launch-bound program."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT)")
    db.executemany("INSERT INTO StringIds VALUES(?, ?)", [(i, f"kernel_{i}_v{i}") for i in range(500)])
    db.execute("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)")
    db.execute("INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.25.0')")
    pid = 1 << 48 | 111 << 24
    db.execute("CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT)")
    db.execute("INSERT INTO PROCESSES VALUES(?, 111, 'python')", (pid,))
    db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({KERNEL})")
    db.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
        " correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER)"
    )
    db.execute(
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,"
        " textId INTEGER, domainId INTEGER)"
    )
    at = 1
    while path.stat().st_size < size:
        kernels, calls, ranges = [], [], []
        for i in range(20_000):
            t = (at + i) * 10_000
            launch = (32, 8 + i % 100, 1, 1, 128, 1, 1, 0, 0, 0, 0)  # registers, grid, block, shared and local memory
            kernels.append((t + 5000, t + 9000, 0, 1, 7, at + i, pid, *[i % 500] * 3, *launch, i, None, None))
            calls.append((t + 1000, t + 4000, 0, pid | 112, at + i, i % 500, 0, None))
            ranges.append((t, t + 4500, 59, f"aten::add, op_id = {at + i}", pid | 112, None, 0))
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + ",".join("?" * 24) + ")", kernels)
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?,?,?,?,?,?,?,?)", calls)
        db.executemany("INSERT INTO NVTX_EVENTS VALUES(?,?,?,?,?,?,?)", ranges)
        db.commit()
        at += 20_000
    db.close()


def make_snapshot(path: Path, size: int) -> None:
    """Allocations and frees with the call stacks of a training program: each a list of its own of shared frames."""
    frames = [
        {"name": f"function_{i}", "filename": f"/site-packages/torch/nn/module_{i % 97}.py", "line": i}
        for i in range(3000)
    ]
    events = []
    bytes_of_event = 330
    for i in range(size // bytes_of_event):
        first = i // 2 * 37 % 2900
        events.append(
            {
                "action": "alloc" if i % 2 == 0 else "free_completed",
                "addr": 140_000_000_000_000 + i // 2 % 5000 * 2_097_152,
                "size": 512 + i // 2 % 4000 * 512,
                "stream": 0,
                "time_us": 1_794_765_792_000_000 + i * 3,
                "compile_context": "N/A",
                "user_metadata": "",
                "frames": frames[first : first + 50],
            }
        )
    snapshot = {"segments": [], "device_traces": [events], "allocator_settings": {}, "external_annotations": []}
    with path.open("wb") as out:
        pickle.dump(snapshot, out, protocol=4)


def scan_seconds(path: Path) -> float:
    """SQLite alone, visiting every column of every row that the reader asks for."""
    columns = {
        "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId streamId correlationId globalPid "
        "graphNodeId demangledName shortName gridX gridY gridZ blockX blockY blockZ registersPerThread "
        "staticSharedMemory dynamicSharedMemory graphId",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId",
        "NVTX_EVENTS": "start end eventType globalTid domainId text textId",
    }
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    start = time.process_time()
    for table, names in columns.items():
        db.execute("SELECT " + ", ".join(f'count("{name}")' for name in names.split()) + f" FROM {table}").fetchall()
    seconds = time.process_time() - start
    db.close()
    return seconds


def open_seconds(firelane: str, path: Path) -> tuple[float, float, float]:
    """Wall and processor time, each the best of five, and the peak of memory in MB."""
    wall = processor = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run([firelane, "lanes", str(path)], check=True, stdout=subprocess.DEVNULL)
        wall = min(wall, time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = min(processor, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return wall, processor, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


def measure(firelane: str, what: str, path: Path) -> list[str]:
    """Rows of the table, from a process of its own, so that the peak is the file's."""
    size = path.stat().st_size / 1e6
    wall, processor, peak = open_seconds(firelane, path)
    speed = f"{wall:.2f} s | {size / wall:.0f} MB/s | {processor:.2f} s"
    rows = [f"| {what} | {size:.0f} MB | {speed} | {peak:.0f} MB, {peak / size:.1f} times the file |"]
    if path.suffix == ".sqlite":
        scan = min(scan_seconds(path) for _ in range(5))
        rows.append(
            f"| SQLite's own scan of the same columns, one thread | {size:.0f} MB | {scan:.2f} s | "
            f"{size / scan:.0f} MB/s | {scan:.2f} s | |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firelane", nargs="?", default="build/release/firelane", help="the command to measure")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those that are there")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    options = parser.parse_args()
    kinds = {
        "XPlane, 3 million ops": ("run.xplane.pb", make_xplane),
        "Nsight Systems' SQLite": ("run.sqlite", make_nsight),
        "memory snapshot": ("snapshot.pickle", make_snapshot),
    }
    lines = [
        "| file | size | time | speed | processor time | peak memory |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for what, (name, make) in kinds.items():
            path = folder / name
            if not path.exists():
                make(path, 100_000_000)
            with concurrent.futures.ProcessPoolExecutor(1) as beside:
                lines += beside.submit(measure, options.firelane, what, path).result()
    table = "\n".join(lines)
    print(table)
    if options.write:
        readme.write("formats.py", table)


if __name__ == "__main__":
    main()
