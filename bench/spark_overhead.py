#!/usr/bin/env python3
"""What Spark adds to the native map, on one machine: `firelane.spark` and `firelane ranks` on one folder, in turns.

    python bench/spark_overhead.py FOLDER|TRACE.json.gz FIRELANE [RUNS]

Of a trace 64 links to it are made, which say by their names of which rank they are. Prints one JSON line: the seconds
of each, the CPU seconds of all its processes, best of RUNS, and the median of the ratios. The session is up and
has mapped the folder once before the clock starts, as on a cluster, where one session serves many jobs; starting it (a
JVM, Python workers) is a figure of its own. bench/ranks.py runs this in an environment that has pyspark.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILES = 64


def firelane_spark() -> Any:
    """firelane/spark.py alone: the package around it has native modules that this needs not."""
    spec = importlib.util.spec_from_file_location("firelane_spark", ROOT / "python" / "firelane" / "spark.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_seconds() -> float:
    """Of this process and all below it, the JVM, its Python workers and what these started and waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(int(fields[i]) for i in (11, 12, 13, 14))
    total = 0
    for process, own in ticks.items():
        up = process
        while up not in (0, os.getpid()):
            up = parents.get(up, 0)
        total += own if up else 0
    return total / os.sysconf("SC_CLK_TCK")


def timed(run: Callable[[], bytes]) -> tuple[float, float, bytes]:
    begun, cpu_begun = time.perf_counter(), cpu_seconds()
    answer = run()
    return time.perf_counter() - begun, cpu_seconds() - cpu_begun, answer


def link_ranks(trace: Path, folder: Path) -> None:
    first = folder / "rank0.json"
    first.write_bytes(gzip.decompress(trace.read_bytes()))
    for rank in range(1, FILES):
        os.link(first, folder / f"rank{rank}.json")


def main() -> None:
    if Path(sys.argv[1]).is_dir():
        compare(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        link_ranks(Path(sys.argv[1]), Path(folder))
        compare(folder)


def compare(folder: str) -> None:
    firelane = sys.argv[2]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    begun = time.perf_counter()
    builder = SparkSession.builder.master("local[*]").appName("firelane bench")
    spark = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    module = firelane_spark()

    def by_spark() -> bytes:
        answer: bytes = module.answer(spark, [folder], ["--json"], command=firelane)
        return answer

    def native() -> bytes:
        return subprocess.run([firelane, "ranks", folder, "--json"], stdout=subprocess.PIPE, check=True).stdout

    by_spark()
    started = time.perf_counter() - begun
    times = []
    for _ in range(runs):
        spark_s, spark_cpu, spark_answer = timed(by_spark)
        native_s, native_cpu, native_answer = timed(native)
        assert spark_answer == native_answer, "Spark's answer is not that of one machine"
        times.append((spark_s, native_s, spark_cpu, native_cpu))
    spark.stop()
    sizes = [each.stat().st_size for each in Path(folder).iterdir()]
    print(
        json.dumps(
            {
                "files": len(sizes),
                "largest_bytes": max(sizes),
                "first_s": started,
                "spark_s": min(each[0] for each in times),
                "native_s": min(each[1] for each in times),
                "ratio": sorted(each[0] / each[1] for each in times)[len(times) // 2],
                "spark_cpu_s": min(each[2] for each in times),
                "native_cpu_s": min(each[3] for each in times),
            }
        )
    )


if __name__ == "__main__":
    main()
