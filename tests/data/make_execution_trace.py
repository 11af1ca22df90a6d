"""Makes execution_trace/et.json.gz and run.json.gz: both files of one run, for reading them joined.

python tests/data/make_execution_trace.py tests/data/execution_trace
"""

import gzip
import sys
import tempfile
from pathlib import Path

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

torch.manual_seed(0)
w, v = (torch.randn(512, 512, requires_grad=True) for _ in range(2))
x = torch.randn(256, 512)


def step():
    a = torch.relu(x @ w)  # two branches that do not need each other
    b = torch.tanh(x @ v)
    (a * b).sum().backward()
    with torch.no_grad():
        for p in (w, v):
            p.sub_(p.grad, alpha=1e-6)
            p.grad = None


def main(out: Path) -> None:
    step()
    with tempfile.TemporaryDirectory() as folder:
        et, run = Path(folder) / "et.json", Path(folder) / "run.json"
        with profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=True,
            schedule=schedule(wait=0, warmup=0, active=3, repeat=1),
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(run)),
            execution_trace_observer=ExecutionTraceObserver().register_callback(str(et)),
        ) as prof:
            for _ in range(3):
                step()
                prof.step()
        for made, name in ((et, "et.json.gz"), (run, "run.json.gz")):
            (out / name).write_bytes(gzip.compress(made.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
