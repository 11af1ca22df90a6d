"""Compares our numbers with HolisticTraceAnalysis on real GPU traces, where both define them the same way.

    .venv/bin/python bench/agree_hta.py [TRACE ...]      # default: the GPU traces of tests/data

Prints a Markdown table (docs/analyses.md shows one, with the reason for each difference). HTA runs in its own venv, and
with its default of truncating times to whole microseconds turned off (a kernel of 1.9 us would count as 1).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from load import HTA_PACKAGE, ROOT, hta_python

FIRELANE = ROOT / "build" / "release" / "firelane"
TRACES = ["gpt_full", "gpt_plain", "gpt_slowdata", "mm64", "mm1024", "mm8192", "two_streams", "one_rank", "cuda_graph"]

# Runs in HTA's venv; prints one JSON object. Times are in us, as in HTA.
HTA_PROGRAM = """
import json, shutil, sys, tempfile, logging
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
answer = {}
with tempfile.TemporaryDirectory() as folder:
    path = shutil.copy(sys.argv[1], folder)
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir=folder, include_last_profiler_step=True)
    def ask(name, question):
        try:
            answer[name] = float(question())
        except Exception as error:
            answer[name] = type(error).__name__
    busy = analysis.get_temporal_breakdown(visualize=False)
    ask("busy", lambda: busy["compute_time(us)"][0] + busy["non_compute_time(us)"][0])
    ask("window", lambda: busy["kernel_time(us)"][0])
    kinds = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100000, duration_ratio=1.0)[1]
    by_kind = kinds.groupby("kernel_type")["sum (us)"].sum()
    ask("kernels", lambda: by_kind.get("COMPUTATION", 0) + by_kind.get("COMMUNICATION", 0))
    ask("copies", lambda: by_kind.get("MEMORY", 0))
    launches = analysis.get_cuda_kernel_launch_stats(ranks=[0], include_memory_events=False, visualize=False)[0]
    ask("launches", lambda: len(launches))
    ask("delay", lambda: launches["launch_delay"].median())
    ask("queue", lambda: analysis.get_queue_length_summary(ranks=[0])["max"].max())
print(json.dumps(answer))
"""

LAUNCHED = """
select d.start_ns - (l.start_ns + l.duration_ns) as delay_ns, l.name as call
from device_slices d join host_slices l on d.launch = l.id where d.kind = 'kernel'
"""


def ours(path: Path) -> dict:
    def ask(*arguments):
        return json.loads(subprocess.run([FIRELANE, *arguments, "--json"], check=True, capture_output=True).stdout)

    info, kernels = ask("info", path), ask("kernels", path)
    launched = ask("sql", path, LAUNCHED)["rows"]
    comparable = [row for row in launched if row["call"] in ("cudaLaunchKernel", "cudaLaunchKernelExC")]
    rows = kernels["kernels"]
    return {
        "busy": info["device_busy_ns"] / 1e3,
        "kernels": sum(row["total_ns"] for row in rows if row["kind"] in ("kernel", "collective")) / 1e3,
        "copies": sum(row["total_ns"] for row in rows if row["kind"] in ("copy", "set")) / 1e3,
        "launches": len(comparable),
        "all_launches": len(launched),
        "delay": statistics.median(max(0, row["delay_ns"]) for row in comparable) / 1e3 if comparable else 0,
    }


def main() -> None:
    paths = [Path(path) for path in sys.argv[1:]] or [ROOT / "tests" / "data" / f"{name}.json.gz" for name in TRACES]
    python = hta_python()
    if python is None:
        sys.exit(1)
    print(f"{HTA_PACKAGE}; times in us, HTA / firelane\n")
    print(
        "| trace | device busy | kernels, total | memcpys and memsets | launches with cudaLaunchKernel "
        "| median launch delay |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(HTA_PROGRAM)
        program.flush()
        for path in paths:
            exact = os.environ | {"HTA_DISABLE_NS_ROUNDING": "1"}
            done = subprocess.run(
                [python, program.name, path.resolve()], capture_output=True, text=True, check=False, env=exact
            )
            if done.returncode != 0:
                reason = done.stderr.strip().splitlines()[-1].split(":")[0]
                print(f"| {path.name.split('.')[0]} | HTA fails: {reason} |  |  |  |  |")
                continue
            theirs, mine = json.loads(done.stdout.splitlines()[-1]), ours(path)
            cells = [path.name.split(".")[0]]
            for key, digits in (("busy", 0), ("kernels", 0), ("copies", 0), ("launches", 0), ("delay", 1)):
                left = theirs[key] if isinstance(theirs[key], str) else f"{theirs[key]:,.{digits}f}"
                cells.append(f"{left} / {mine[key]:,.{digits}f}")
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
