"""Records the programs of bench/diagnose/cpu_programs.py: each with its planted fault and without it.

    sudo chrt -f 20 .venv/bin/python tests/data/make_cpu_faults.py [NAME ...]      # writes cpu_faults/ here

Real-time priority (chrt) keeps other programs on the machine from slowing steps down; where `firelane diagnose`
reports slow steps in a recording that has none planted, record it again. Writes NAME.faulty.lane and NAME.fixed.lane,
the same as .json.gz with torch.profiler where it can show the fault, NAME.healthy.lane for programs without a fault,
and cold-start.lane, whose first recorded step is slow. tests/python/test_planted_faults.py says what `firelane
diagnose` must find in them.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/diagnose"))

import torch

from cpu_programs import FAULTS, HEALTHY, MEMORY, Step
from recorded import record

FOLDER = Path(__file__).resolve().parent / "cpu_faults"
# The faults that a trace of torch.profiler shows with the flags given to it here.
WITH_TORCH = [
    "input-bound",
    "single-tensor-optimizer",
    "zero-grad-fills",
    "pointwise-unfused",
    "layout-copies",
    "dtype-ping-pong",
    "attention-unfused",
    "launch-overhead",
]


def slow_start() -> Step:
    """The first recorded step waits, as it would for a compiler or a cache."""
    train = HEALTHY["large-gradients"]()
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1
        if calls == 3 + 1 + 1:  # record() makes three steps before recording and one to warm up
            time.sleep(0.2)
        train()

    return step


def main() -> None:
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    os.chdir(FOLDER)  # torch.profiler writes the path it was given into the trace
    wanted = sys.argv[1:]
    for name, fault in FAULTS.items():
        if wanted and name not in wanted:
            continue
        for kind, planted in (("faulty", True), ("fixed", False)):
            record(fault.make(planted), Path(f"{name}.{kind}.lane"), **fault.flags)
            if name in WITH_TORCH:
                # Few steps: these files are large.
                record(fault.make(planted), Path(f"{name}.{kind}.json.gz"), "torch", recorded=3, **fault.flags)
    for name, make in HEALTHY.items():
        if not wanted or name in wanted:
            record(make(), Path(f"{name}.healthy.lane"), **MEMORY)
    if not wanted or "cold-start" in wanted:
        record(slow_start(), Path("cold-start.lane"), wait=0)


if __name__ == "__main__":
    main()
