#!/usr/bin/env python3
"""How well many ranks are matched, aligned and judged, and how fast: the study behind `firelane ranks`.

    make bench                                            # builds ranks_study beside the rest
    .venv/bin/python bench/ranks.py --jobs 100 --write    # prints the tables and puts them into bench/README.md

Jobs come from a generator with a known truth (src/ranks/testing/generate.h): ranks that work and meet in collectives of
tensor, pipeline, expert and data parallelism, on hosts whose clocks are off by up to 10 ms and drift by up to 50 ppm,
with rows, arguments, names and ranks missing, and one rank late for a planted reason. A third of the jobs of each kind
is data parallel only, a third tensor parallel, a third everything.

Times are the best of several runs. HTA, where it is installed, does its overlap of the same eight files. Spark's
overhead (bench/spark_overhead.py) is that of a session that is up, in turns with the native command on 64 files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import readme
from load import HTA_PACKAGE, hta_python, python_with

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
STUDY = BUILD / "bench" / "ranks_study"
FIRELANE = BUILD / "firelane"
LARGE = ROOT / "build" / "bench" / "llm_generate_1000MB.json"  # bench/load.py makes it


def lines_of(*command: str) -> list[dict[str, Any]]:
    done = subprocess.run([str(STUDY), *command], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(head: list[str], rows: list[list[str]]) -> str:
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(row) + " |" for row in rows])


def microseconds(ns: float) -> str:
    return "-" if ns == 0 else f"{ns / 1000:.1f}"


def reasons(score: dict[str, Any]) -> str:
    """Why rows stayed without a partner. Rows that nobody else recorded are refused too, and are not possible ones."""
    if score["matched"] == score["possible"]:
        return ""
    refused = sorted(score.get("refused", {}).items(), key=lambda each: -each[1])
    return ", ".join(f"{why} {100 * count / score['possible']:.2f}%" for why, count in refused if why != "alone")


def score_tables(scores: list[dict[str, Any]]) -> str:
    healthy = [s for s in scores if not s["planted"]]
    matching = [
        [
            s["kind"],
            f"{s['ranks']:,}",
            f"{s['jobs']:,}",
            f"{100 * s['matched'] / s['possible']:.3f}%",
            str(s["wrong"]),
            microseconds(s["worst_clock_ns"]),
            microseconds(s["worst_bound_ns"]),
            str(s["outside_bound"]),
            f"{s['flagged']} of {s['jobs']}",
            reasons(s),
        ]
        for s in healthy
    ]
    planted = [
        [
            s["kind"].removeprefix("straggler: "),
            f"{s['ranks']:,}",
            f"{s['named_first']} of {s['jobs']}",
            f"{s['cause_right']} of {s['jobs']}",
        ]
        for s in scores
        if s["planted"]
    ]
    flagged, jobs = sum(s["flagged"] for s in healthy), sum(s["jobs"] for s in healthy)
    named, late = sum(s["named_first"] for s in scores), sum(s["jobs"] for s in scores if s["planted"])
    summary = (
        f"Healthy jobs flagged: {flagged} of {jobs:,} ({100 * flagged / jobs:.2f}%). "
        f"Planted ranks named first: {named} of {late:,} ({100 * named / late:.1f}%)."
    )
    head = [
        "healthy jobs",
        "ranks",
        "jobs",
        "matched",
        "wrong matches",
        "worst clock error, us",
        "worst bound, us",
        "truth outside of the bound",
        "flagged",
        "refused, of possible rows",
    ]
    return "\n\n".join(
        [
            table(head, matching),
            table(["planted straggler (10% late)", "ranks", "named first", "cause right"], planted),
            summary,
        ]
    )


@dataclass
class Cost:
    seconds: float
    cpu_seconds: float
    peak_mib: float

    def cells(self, goal: str) -> list[str]:
        return [f"{self.seconds:.2f} s", f"{self.cpu_seconds:.2f} s", f"{self.peak_mib:.0f} MiB", goal]


# Linux counts the memory of the process that starts another to the peak of the started one: this small one stands
# between the command and the harness, which holds whole traces.
MEASURE_SCRIPT = """
import json, os, sys, time
begun = time.perf_counter()
nowhere = os.open(os.devnull, os.O_RDWR)
to_nowhere = [(os.POSIX_SPAWN_DUP2, nowhere, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=to_nowhere)
_, status, usage = os.wait4(process, 0)
seconds = time.perf_counter() - begun
print(json.dumps([status, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def measure(command: list[str], runs: int) -> Cost:
    """Of the fastest run."""
    best: Cost | None = None
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-S", "-c", MEASURE_SCRIPT, *command], check=True, capture_output=True, text=True
        )
        status, *figures = json.loads(done.stdout)
        if status != 0:
            raise RuntimeError(f"{command} failed")
        cost = Cost(*figures)
        best = cost if best is None or cost.seconds < best.seconds else best
    assert best is not None
    return best


HTA_SCRIPT = """
import sys, time
from hta.trace_analysis import TraceAnalysis
begun = time.perf_counter()
overlap = TraceAnalysis(trace_dir=sys.argv[1]).get_comm_comp_overlap(visualize=False)
print(len(overlap), time.perf_counter() - begun)
"""


def hta_seconds(folder: Path) -> str:
    python = hta_python()
    if python is None:
        return "not installed"
    done = subprocess.run([python, "-c", HTA_SCRIPT, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        ranks, seconds = done.stdout.split()[-2:]
        files = len(list(folder.iterdir()))
        return f"{float(seconds):.1f} s" + ("" if int(ranks) == files else f" for {ranks} of {files} files")
    last = (done.stderr.strip().splitlines() or ["failed"])[-1]
    return f"fails: {last[:80]}"


SPARK_VENV = ROOT / "build" / "bench-spark"
SPARK_PACKAGES = ["pyspark>=4,<5", "pyarrow", "pandas<3"]


def spark_rows(trace: Path, runs: int) -> list[list[str]]:
    python = python_with("pyspark", SPARK_PACKAGES, SPARK_VENV)
    if python is None or shutil.which("java") is None:
        return [["Spark", "not installed", "", "", ""]]
    script = ROOT / "bench" / "spark_overhead.py"
    command = [str(python), str(script), str(trace), str(FIRELANE), str(runs)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return [
            [
                "Spark",
                f"fails: {(done.stderr.strip().splitlines() or ['killed'])[-1][:80]}",
                "",
                "",
                "",
            ]
        ]
    found = json.loads(done.stdout.splitlines()[-1])
    what = f"{found['files']} traces of {found['largest_bytes'] / 1e6:.0f} MB"
    return [
        [f"`ranks` of {what}", f"{found['native_s']:.2f} s", f"{found['native_cpu_s']:.2f} s", "", ""],
        [
            f"Spark, the same, session up: {100 * (found['ratio'] - 1):+.0f}% (median of pairs)",
            f"{found['spark_s']:.2f} s",
            f"{found['spark_cpu_s']:.2f} s",
            "",
            "+15%",
        ],
        ["Spark, starting a session and its first answer", f"{found['first_s']:.1f} s", "", "", ""],
    ]


def say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr)


def speed_table(trace: Path, runs: int, *, with_hta: bool, with_spark: bool) -> str:
    rows = []
    say("the reduce in memory")
    for sequence, how in (("1", "sequence numbers"), ("0", "order")):
        done = [lines_of("reduce", "1024", "5000", sequence)[0] for _ in range(runs)]
        best = min(done, key=lambda each: float(each["seconds"]))
        what = f"the reduce alone, 1,024 ranks x 5,000 collectives in memory, by {how}"
        rows.append([what, f"{best['seconds']:.2f} s", f"{best['cpu_seconds']:.2f} s", "", "1 s"])
    say("the reduce of parts on disk")
    with tempfile.TemporaryDirectory() as name:
        lines_of("make", name, "1024", "5000")
        size = sum(path.stat().st_size for path in Path(name).iterdir()) / 1e6
        cost = measure([str(FIRELANE), "ranks", "reduce", name, "--json"], runs)
        rows.append([f"`ranks reduce` of the same as {size:.0f} MB of parts on disk", *cost.cells("")])
    if trace.exists():
        with tempfile.TemporaryDirectory() as name:
            first = Path(name) / "rank0.json"
            content = gzip.decompress(trace.read_bytes())
            for rank in range(8):
                # HTA knows a rank by this alone, and would take the eight for one.
                info = f'{{"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 8}},'.encode()
                (Path(name) / f"rank{rank}.json").write_bytes(info + content[content.index(b"{") + 1 :])
            del content
            say("8 traces")
            cost = measure([str(FIRELANE), "ranks", name], runs)
            rows.append([f"`ranks` of 8 traces of {first.stat().st_size / 1e6:.0f} MB", *cost.cells("1.5 s")])
            if LARGE.exists():
                say("a large trace")
                target = str(Path(name) / "large.part")
                cost = measure([str(FIRELANE), "ranks", "map", str(LARGE), "-o", target, "--force"], runs)
                rows.append([f"`ranks map` of a trace of {LARGE.stat().st_size / 1e9:.1f} GB", *cost.cells("400 MiB")])
                Path(target).unlink()
            if with_hta:
                say("HTA on the same")
                rows.append([f"{HTA_PACKAGE}, overlap of the same files", hta_seconds(Path(name)), "", "", ""])
            if with_spark:
                say("Spark on 64 traces")
                rows += spark_rows(trace, runs)
    return table(["what", "time", "CPU time", "peak memory", "goal"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100, help="of each kind")
    parser.add_argument("--runs", type=int, default=5, help="of each timing")
    parser.add_argument("--scores", type=Path, help="lines that `ranks_study score` printed before")
    parser.add_argument("--only-scores", action="store_true", help="no timings; with --write those that are there stay")
    parser.add_argument("--trace", type=Path, default=ROOT.parent / "shared" / "traces" / "llm_generate.json.gz")
    parser.add_argument("--without-hta", action="store_true", help="do not install and time HTA")
    parser.add_argument("--without-spark", action="store_true", help="do not install and time Spark")
    parser.add_argument("--write", action="store_true", help="put the tables into bench/README.md")
    args = parser.parse_args()
    if not args.scores:
        say(f"{args.jobs} jobs of each kind")
    if args.scores:
        scores = [json.loads(line) for line in args.scores.read_text().splitlines()]
    else:
        scores = lines_of("score", str(args.jobs))
    if args.only_scores:
        there = readme.read("ranks.py")
        timings = there[there.index("| what | time |") :]
    else:
        timings = speed_table(args.trace, args.runs, with_hta=not args.without_hta, with_spark=not args.without_spark)
    text = score_tables(scores) + "\n\n" + timings
    print(text)
    if args.write:
        readme.write("ranks.py", text)


if __name__ == "__main__":
    main()
