"""Makes the files of gpu_pairs/ on a machine with an NVIDIA GPU: files of one run, for reading them joined.

    python tests/data/make_gpu_pairs.py tests/data/gpu_pairs

NAME.run.json.gz and NAME.et.json.gz are torch.profiler's trace and the execution trace of the same steps. Two chains of
scans, which fill a small part of the GPU each, need nothing of each other until their sums meet:

    one_stream    launched in turns on one stream: its order is stricter than the data
    two_streams   each chain on a stream of its own; which work waits for which is in the execution trace alone
    late_event    two streams, and the second waits for all of the first, though it needs the first scan only

true_steps.json has the median step of each without a profiler: what `whatif --data-order` of one_stream and of
late_event is compared with. memory.snapshot.pickle.gz is the memory snapshot of the process whose steps are in
memory.run.json.gz, which has the allocations, too.
"""

import gzip
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

ROWS, COLUMNS = 4, 1 << 19  # a few blocks of a scan, which takes about a millisecond
STEPS = 4


def scans(x: torch.Tensor, times: int) -> torch.Tensor:
    for _ in range(times):
        x = torch.cumsum(x, 1)
    return x


def one_stream(x, y, _side):
    a, b = x, y
    for _ in range(3):
        a = torch.cumsum(a, 1)
        b = torch.cumsum(b, 1)
    return (a.sum() + b.sum()).item()


def two_streams(x, y, side):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        b = scans(y, 3)
    a = scans(x, 3)
    torch.cuda.current_stream().wait_stream(side)
    b.record_stream(torch.cuda.current_stream())
    return (a.sum() + b.sum()).item()


def late_event(x, y, side):
    first = torch.cumsum(x, 1)
    a = scans(first, 3)
    side.wait_stream(torch.cuda.current_stream())  # could wait for `first` alone
    with torch.cuda.stream(side):
        b = scans(first + y, 3)
    torch.cuda.current_stream().wait_stream(side)
    b.record_stream(torch.cuda.current_stream())
    return (a.sum() + b.sum()).item()


def early_event(x, y, side):
    """late_event as its data allows it."""
    first = torch.cumsum(x, 1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        b = scans(first + y, 3)
    a = scans(first, 3)
    torch.cuda.current_stream().wait_stream(side)
    b.record_stream(torch.cuda.current_stream())
    return (a.sum() + b.sum()).item()


PROGRAMS = {"one_stream": one_stream, "two_streams": two_streams, "late_event": late_event}


def pack(made: Path, to: Path) -> None:
    to.write_bytes(gzip.compress(made.read_bytes(), 9, mtime=0))
    print(to.name, to.stat().st_size, "bytes")


def record(step, run: Path, observer=None, **options) -> None:
    """One step to warm up, then STEPS recorded ones, with synchronization events where options say so."""
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        record_shapes=True,
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(run)),
        execution_trace_observer=observer,
        **options,
    ) as prof:
        for _ in range(STEPS + 1):
            step()
            prof.step()


def median_step_ns(step) -> int:
    for _ in range(5):
        step()
    times = []
    for _ in range(40):
        start = time.perf_counter_ns()
        step()  # ends with item(): the device is done
        times.append(time.perf_counter_ns() - start)
    return round(statistics.median(times))


def memory_run(folder: Path, out: Path) -> None:
    """Allocations before, in and after the recorded steps, with frees that are completed later on another stream."""
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    kept = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda")]
    side = torch.cuda.Stream()
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda()
    x = torch.randn(64, 256, device="cuda")

    def step():
        model(x).sum().backward()
        model.zero_grad(set_to_none=True)
        with torch.cuda.stream(side):
            torch.ones(1 << 18, device="cuda").mul(2).record_stream(torch.cuda.current_stream())
        kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
        torch.cuda.synchronize()

    record(step, folder / "memory.run.json", profile_memory=True)
    kept.append(torch.empty(5 << 20, dtype=torch.uint8, device="cuda"))
    torch.cuda.memory._dump_snapshot(str(folder / "memory.snapshot.pickle"))
    torch.cuda.memory._record_memory_history(enabled=None)
    pack(folder / "memory.run.json", out / "memory.run.json.gz")
    pack(folder / "memory.snapshot.pickle", out / "memory.snapshot.pickle.gz")


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    x, y = (torch.rand(ROWS, COLUMNS, device="cuda") * 1e-6 for _ in range(2))
    side = torch.cuda.Stream()
    true = {
        name: median_step_ns(lambda program=program: program(x, y, side))
        for name, program in {**PROGRAMS, "early_event": early_event}.items()
    }
    (out / "true_steps.json").write_text(json.dumps({"median_step_ns": true}, indent=1) + "\n")
    print(true)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, program in PROGRAMS.items():
            et, run = folder / f"{name}.et.json", folder / f"{name}.run.json"
            # late_event is about a wait that was recorded; in two_streams nothing but the data says what waits.
            config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=name == "late_event")
            observer = ExecutionTraceObserver().register_callback(str(et))
            record(lambda program=program: program(x, y, side), run, observer, experimental_config=config)
            pack(run, out / run.with_suffix(".json.gz").name)
            pack(et, out / et.with_suffix(".json.gz").name)
        memory_run(folder, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
