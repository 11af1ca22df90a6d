#!/usr/bin/env python3
"""The Python API on a GPU: runs every scenario under firelane.profiler, then under torch.profiler; results as JSON.

    tests/gpu/profile_both.py FOLDER [front|collectives|nested ...]

FOLDER/GROUP.firelane.json and GROUP.torch.json hold the results by scenario, with a traceback for failed ones, next
to the Chrome traces. test_profiler.py compares them. Each group is a process of its own: torch.profiler keeps CUPTI's
callbacks for the rest of a process, so firelane comes first in each.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import torch
import torch.distributed as dist

import cuda_programs
import firelane.profiler

CPU, CUDA = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
BOTH = [CPU, CUDA]
EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_flops": True}
UNARY = [
    torch.sin,
    torch.cos,
    torch.tanh,
    torch.exp,
    torch.sigmoid,
    torch.erf,
    torch.floor,
    torch.rsqrt,
    torch.ceil,
    torch.trunc,
]

_programs: dict[str, Callable[[], object]] = {}


def program(name: str):
    """Created once and warmed up, so that both profilers see the same."""
    if name not in _programs:
        torch.manual_seed(0)
        _programs[name] = cuda_programs.PROGRAMS[name]()
        for _ in range(3):
            _programs[name]()
    torch.cuda.synchronize()
    return _programs[name]


# -- results of a profiler ----------------------------------------------------------------


def rows_of(prof, **grouping) -> list[dict]:
    return [
        {
            "key": row.key,
            "device": row.device_type.name,
            "is_range": row.is_user_annotation,
            "count": row.count,
            "shapes": str(row.input_shapes),
            "self_device_us": row.self_device_time_total,
            "device_us": row.device_time_total,
            "self_cpu_us": row.self_cpu_time_total,
            "cpu_bytes": row.cpu_memory_usage,
            "device_bytes": row.device_memory_usage,
            "self_device_bytes": row.self_device_memory_usage,
            "flops": row.flops,
        }
        for row in prof.key_averages(**grouping)
    ]


def columns_of(table: str) -> list[str]:
    return [title.strip() for title in table.splitlines()[1].split("  ") if title.strip()]


def work_of(prof, folder: Path, name: str) -> list[dict]:
    """GPU work as listed in the Chrome trace."""
    path = folder / f"{name}.json.gz"
    prof.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    return [
        {"cat": e["cat"], "name": e["name"], "stream": e["tid"]}
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
    ]


def keep_lane(prof, folder: Path, name: str) -> None:
    if hasattr(prof, "save"):
        prof.save(str(folder / f"{name}.lane"))


# -- scenarios: (profiler module, folder, name for files) -> results ----------------------


def tables(module, folder, name):
    run = program("train")
    with module.profile(activities=BOTH, **EVERYTHING) as prof:
        run()
    table = prof.key_averages().table(sort_by="cuda_time_total", row_limit=-1)
    answers = {
        "rows": rows_of(prof),
        "rows_by_shape": rows_of(prof, group_by_input_shape=True),
        "columns": columns_of(table),
        "columns_by_shape": columns_of(
            prof.key_averages(group_by_input_shape=True).table(sort_by="self_cuda_memory_usage")
        ),
        "names_by_time": [line[:55].strip() for line in table.splitlines()[3:10]],
        "footer": [line.split(":")[0] for line in table.splitlines()[-2:]],
        "table": table.splitlines()[:20],
        "work": work_of(prof, folder, name),
        "events_with_kernels": collections.Counter(event.name for event in prof.events() if event.kernels),
        "use_device": prof.use_device,
    }
    keep_lane(prof, folder, name)
    return answers


def plain_tables(module, folder, name):
    run = program("decode")
    with module.profile(activities=BOTH) as prof:
        run()
    return {"columns": columns_of(prof.key_averages().table(sort_by="self_cuda_time_total")), "rows": rows_of(prof)}


def every_program(module, folder, name):
    answers = {}
    for each in ("copies", "streams", "graph", "compiled"):
        run = program(each)
        with module.profile(activities=BOTH) as prof:
            run()
        answers[each] = {"rows": rows_of(prof), "work": work_of(prof, folder, f"{name}.{each}")}
    return answers


def activities(module, folder, name):
    run = program("decode")
    with module.profile(activities=[CUDA]) as prof:
        run()
    with module.profile() as default:
        run()
    return {
        "supported": sorted(a.name for a in module.supported_activities()),
        "cuda_only": rows_of(prof),
        "cuda_only_columns": columns_of(prof.key_averages().table()),
        "default": rows_of(default),
    }


def scheduled(module, folder, name):
    """Ten steps with one op each: two cycles of wait, warm-up and two recorded steps."""
    x = torch.rand(1 << 16, device="cuda")
    cycles = []

    def ready(prof):
        cycles.append(
            {"rows": rows_of(prof), "work": work_of(prof, folder, f"{name}.{len(cycles)}"), "step": prof.step_num}
        )

    for op in UNARY:
        op(x)
    plan = module.schedule(wait=1, warmup=1, active=2, repeat=2)
    with module.profile(activities=BOTH, schedule=plan, on_trace_ready=ready) as prof:
        for op in UNARY:
            op(x)
            torch.cuda.synchronize()
            prof.step()
    return {"cycles": cycles}


def accumulated(module, folder, name):
    x = torch.rand(1 << 16, device="cuda")
    plan = module.schedule(wait=0, warmup=1, active=1, repeat=2)
    with module.profile(activities=BOTH, schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            x.sin()
            torch.cuda.synchronize()
            prof.step()
    return {"rows": rows_of(prof), "events": sum(event.device_type.name == "CUDA" for event in prof.events())}


def tensorboard(module, folder, name):
    log = folder / f"{name}.log"
    handler = module.tensorboard_trace_handler(str(log), worker_name="w", use_gzip=True)
    x = torch.rand(1 << 16, device="cuda")
    with module.profile(
        activities=BOTH, schedule=module.schedule(wait=0, warmup=1, active=1), on_trace_ready=handler
    ) as prof:
        for _ in range(4):
            x.sin()
            torch.cuda.synchronize()
            prof.step()
    found = []
    for file in sorted(log.iterdir()):
        with gzip.open(file, "rt") as opened:
            found.append(sum(e.get("cat") == "kernel" for e in json.load(opened)["traceEvents"]))
    return {"kernels": found}


def toggled(module, folder, name):
    """Records sin and tanh but not cos, without waiting for the GPU: `busy` is whether it was still working."""
    x = torch.rand(1 << 16, device="cuda")
    for op in (torch.sin, torch.cos, torch.tanh):
        op(x)
    torch.cuda.synchronize()
    answers = {}
    with module.profile(activities=BOTH) as prof:
        x.sin()
        torch.cuda.synchronize()
        prof.toggle_collection_dynamic(False, [CUDA])
        x.cos()
        torch.cuda.synchronize()
        prof.toggle_collection_dynamic(True, [CUDA])
        x.tanh()
        torch.cuda.synchronize()
    answers["work"] = work_of(prof, folder, name)
    answers["ops"] = sorted({row.key for row in prof.key_averages() if row.key.startswith("aten::")})
    if module is firelane.profiler:  # torch.profiler does wait
        done = torch.cuda.Event()
        with module.profile(activities=BOTH) as prof:
            x.sin()
            torch.cuda._sleep(1_000_000_000)  # cycles: half a second
            done.record()
            prof.toggle_collection_dynamic(False, [CUDA])
            x.cos()
            prof.toggle_collection_dynamic(True, [CUDA])
            answers["busy"] = not done.query()
            x.tanh()
        answers["work_while_busy"] = work_of(prof, folder, f"{name}.busy")
        answers["losses_while_busy"] = [f"{loss.reason}: {loss.count}" for loss in prof.losses]
    return answers


def stacks(module, folder, name):
    run = program("train")
    with module.profile(activities=BOTH, with_stack=True, with_modules=True, **EVERYTHING) as prof:
        run()
    path = folder / f"{name}.stacks"
    prof.export_stacks(str(path), "self_cuda_time_total")
    lines = path.read_text().splitlines()
    answers = {"lines": len(lines), "some": lines[:3], "rows": rows_of(prof), "work": work_of(prof, folder, name)}
    if module is firelane.profiler:
        grouped = prof.key_averages(group_by_stack_n=2)
        answers["grouped"] = [row.stack for row in grouped if row.stack and row.device_time_total > 0][:3]
        answers["modules"] = [dict(row) for row in prof.trace.modules()][:20]
        keep_lane(prof, folder, name)
    return answers


def memory_timeline(module, folder, name):
    torch.manual_seed(0)
    with module.profile(activities=BOTH, record_shapes=True, profile_memory=True, with_stack=True) as prof:
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32)).cuda()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(2):
            loss = model(torch.ones(16, 64, device="cuda")).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    path = folder / f"{name}.timeline.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof.export_memory_timeline(str(path), "cuda:0")
    times, sizes = json.loads(path.read_text())
    return {"points": len(times), "at_end": sizes[-1], "most": [max(column) for column in zip(*sizes, strict=True)]}


def in_a_thread(module, folder, name):
    x = torch.rand(256, 256, device="cuda")
    answers = {}

    def work():
        with module.profile(activities=BOTH) as prof:
            (x @ x).sin()
            torch.cuda.synchronize()
        answers["rows"] = rows_of(prof)
        answers["work"] = work_of(prof, folder, name)

    (x @ x).sin()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return answers


def waits(module, folder, name):
    run = program("streams")
    config = torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with module.profile(activities=BOTH, experimental_config=config) as prof:
        run()
    return {"work": work_of(prof, folder, name)}


def collectives(module, folder, name):
    x = torch.ones(1 << 12, device="cuda")
    parts = torch.empty(1 << 12, device="cuda")

    def run():
        dist.all_reduce(x)
        dist.all_gather_into_tensor(parts, x)
        dist.all_gather([parts], x)
        dist.reduce_scatter_tensor(parts, x)
        dist.broadcast(x, 0)
        dist.all_reduce(x.to(torch.bfloat16), op=dist.ReduceOp.MAX)
        dist.barrier()
        torch.cuda.synchronize()

    run()
    with module.profile(activities=BOTH, record_shapes=True) as prof:
        run()
    answers = {"rows": rows_of(prof), "work": work_of(prof, folder, name)}
    keep_lane(prof, folder, name)
    return answers


# -- nested profilers ---------------------------------------------------------------------


def ours_inside_torchs(folder):
    x = torch.rand(1 << 16, device="cuda")
    with torch.profiler.profile(activities=BOTH) as outer:
        x.sin()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with firelane.profiler.profile(activities=BOTH) as inner:
                x.cos()
        x.tanh()
        torch.cuda.synchronize()
    return {
        "losses": [loss.reason for loss in inner.losses],
        "said": [str(w.message) for w in said],
        "rows": rows_of(inner),
        "outer_work": work_of(outer, folder, "nested.outer"),
    }


def ours_afterwards(folder):
    x = torch.rand(1 << 16, device="cuda")
    with firelane.profiler.profile(activities=BOTH) as prof:
        x.sin()
    return {"losses": [loss.reason for loss in prof.losses], "work": work_of(prof, folder, "nested.after")}


def torchs_inside_ours(folder):
    x = torch.rand(1 << 16, device="cuda")
    with firelane.profiler.profile(activities=BOTH) as outer:
        x.sin()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=BOTH):
            x.cos()
        x.tanh()
    return {"losses": [loss.reason for loss in outer.losses], "rows": rows_of(outer)}


# -- running them -------------------------------------------------------------------------

# memory_timeline first: firelane counts the parameters of every live model.
FRONT = [
    memory_timeline, tables, plain_tables, every_program, activities, scheduled, accumulated, tensorboard, toggled,
    stacks, in_a_thread, waits,
]  # fmt: skip
NESTED = [ours_inside_torchs, ours_afterwards, torchs_inside_ours]


def attempt(path: Path, answers: dict, name: str, ask) -> None:
    begin = time.monotonic()
    try:
        answers[name] = ask()
    except Exception:
        answers[name] = {"failed": traceback.format_exc()}
    path.write_text(json.dumps(answers, indent=1))  # after each scenario: the next one may end the process
    print(
        path.name,
        name,
        "failed" if "failed" in answers[name] else "ok",
        f"{time.monotonic() - begin:.1f} s",
        flush=True,
    )


def under_both(folder: Path, group: str, scenarios) -> None:
    for module in (firelane.profiler, torch.profiler):
        answers: dict = {}
        kind = module.__name__.split(".")[0]
        for scenario in scenarios:
            name = f"{scenario.__name__}.{kind}"
            attempt(
                folder / f"{group}.{kind}.json",
                answers,
                scenario.__name__,
                lambda m=module, s=scenario, n=name: s(m, folder, n),
            )


def with_process_group(folder: Path) -> None:
    if not dist.is_nccl_available():
        raise SystemExit("profile_both: this torch has no NCCL")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", init_method=f"file://{folder.resolve()}/store", rank=0, world_size=1)
    under_both(folder, "collectives", [collectives])
    dist.destroy_process_group()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for group in sys.argv[2:] or ["front"]:
        if group == "front":
            under_both(folder, group, FRONT)
        elif group == "collectives":
            with_process_group(folder)
        elif group == "nested":
            answers: dict = {}
            for scenario in NESTED:
                attempt(folder / "nested.json", answers, scenario.__name__, lambda s=scenario: s(folder))
        else:
            raise SystemExit(f"profile_both: no such group: {group}")


if __name__ == "__main__":
    main()
