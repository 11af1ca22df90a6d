#!/usr/bin/env python3
"""Records every program of cuda_programs.py with firelane, then with torch.profiler: NAME.lane and NAME.json.gz.

    tests/gpu/record_both.py FOLDER [NAME ...]

Needs only the recorder, so that it runs where the rest of firelane is not built; test_gpu_parity.py compares the files.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from cuda_programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]


def load_recorder():
    """The compiled recorder alone: importing the package would need the reader, too."""
    package = ROOT / "python/firelane"
    sys.path.insert(0, str(package))
    import _recorders  # type: ignore[import-not-found]

    library = _recorders.find(torch.__version__, bool(torch.compiled_with_cxx11_abi()))
    files = sorted(package.glob(f"_recorder{sysconfig.get_config_var('EXT_SUFFIX')}"))
    if library is None or not files:
        raise SystemExit("record_both: the recorder is not built; `make build` builds it")
    ctypes.CDLL(str(library))
    spec = importlib.util.spec_from_file_location("_recorder", files[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held(snapshot: list[dict]) -> list[dict]:
    """torch's own account of its allocator's segments, for test_gpu_parity.py."""
    return [
        {
            "device": segment["device"],
            "address": segment["address"],
            "bytes": segment["total_size"],
            "stream": segment["stream"],
            "pool": segment["segment_pool_id"],
            "blocks": [[block["size"], block["state"]] for block in segment["blocks"]],
        }
        for segment in snapshot
    ]


def with_firelane(recorder, run, path: Path) -> list[str]:
    before = torch.cuda.memory_snapshot()
    session = recorder.start(recorder.RecordOptions(shapes=True, memory=True, cuda=True))
    internals: Any = torch._C._profiler  # as firelane.profiler does: torch.compile names its launches
    fast_op = internals._RecordFunctionFast
    internals._RecordFunctionFast = recorder.FastOp
    torch.autograd.profiler._run_on_profiler_start()
    run()
    torch.autograd.profiler._run_on_profiler_stop()
    internals._RecordFunctionFast = fast_op
    session.stop()
    path.with_suffix(".memory.json").write_text(
        json.dumps({"before": held(before), "after": held(torch.cuda.memory_snapshot())})
    )
    session.save(str(path))
    return [f"{x.reason}: {x.count}" for x in session.losses]


def with_torch(run, path: Path) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=False)
    with torch.profiler.profile(
        activities=activities, record_shapes=True, profile_memory=True, experimental_config=config
    ) as p:
        run()
    p.export_chrome_trace(str(path))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    recorder = load_recorder()
    notes: dict[str, list[str]] = {}
    runs: dict[str, Callable[[], object]] = {}

    def attempt(name: str, record) -> None:
        try:
            notes[name] = record() or []
        except Exception:
            notes[name] = ["failed: " + traceback.format_exc()]
        print(name, notes[name], flush=True)

    def ours(name: str, of: str) -> None:
        attempt(name, lambda: with_firelane(recorder, runs[of], folder / f"{name}.lane"))

    for name in sys.argv[2:] or PROGRAMS:
        torch.manual_seed(0)
        runs[name] = PROGRAMS[name]()
        for _ in range(3):
            runs[name]()
        torch.cuda.synchronize()
        ours(name, name)
    # torch.profiler keeps CUPTI's callbacks for the rest of the process: after it, firelane has to do without them.
    for name, run in runs.items():
        attempt(name + " under torch.profiler", lambda name=name, run=run: with_torch(run, folder / f"{name}.json.gz"))
    if "train" in runs:
        ours("train_after_torch", "train")
    (folder / "notes.json").write_text(json.dumps(notes, indent=1))


if __name__ == "__main__":
    main()
