"""`firelane ops` compared with torch itself, row by row, for real programs under torch.profiler.

CPU programs run here; tests/data has two GPU traces with torch's own results (ops_gpu_*). docs/ops.md lists the
intended differences, which the tests name.
"""

import gzip
import json
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))

TIMES = ["self_cpu_time_total", "cpu_time_total", "self_device_time_total", "device_time_total"]
MEMORY = ["cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage"]
WAITS = {"Context Sync", "Stream Sync", "Stream Wait Event", "Event Sync"}


def firelane(*args):
    done = subprocess.run([FIRELANE, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def firelane_rows(trace, *flags):
    return json.loads(firelane("ops", trace, "--json", *flags))["rows"]


def torch_rows(averages):
    """FunctionEventAvg objects as plain rows, with the names of firelane's JSON."""
    return [
        {
            "name": avg.key,
            "on_device": "CPU" not in str(avg.device_type),
            "is_user_annotation": avg.is_user_annotation,
            "is_async": avg.is_async,
            "is_top_level": avg.cpu_parent is None,
            "count": avg.count,
            "flops": avg.flops,
            "input_shapes": str(avg.input_shapes) if avg.input_shapes != "" else None,
            "stack": ";".join(avg.stack) or None,
            **{f"{name}_ns": round(getattr(avg, name) * 1000) for name in TIMES},
            **{f"{name}_bytes": getattr(avg, name) for name in MEMORY},
        }
        for avg in averages
    ]


def comparable(row, fields):
    row = dict(row)
    row.setdefault("on_device", row.get("device_type") != "cpu")
    return {field: row[field] or 0 if field.endswith("_bytes") else row[field] for field in fields}


KEY = ["name", "on_device", "is_user_annotation", "input_shapes", "stack"]
NUMBERS = ["count", "is_async", "is_top_level", *(f"{t}_ns" for t in TIMES), *(f"{m}_bytes" for m in MEMORY)]


def assert_same_rows(ours, theirs, fields=(*KEY, *NUMBERS)):
    assert theirs, "torch gave no rows: the test would prove nothing"
    assert [comparable(r, KEY) for r in ours] == [comparable(r, KEY) for r in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert comparable(our, fields) == comparable(their, fields)


NUMBER = re.compile(r" *(-?\d+\.\d+) ?(us|ms|s|[KMGT]?[Bb]|%)?")
SCALE = {
    "us": 1,
    "ms": 1e3,
    "s": 1e6,
    "b": 1,
    "Kb": 1024,
    "B": 1,
    "KB": 1024,
    "Mb": 1024**2,
    "MB": 1024**2,
    "Gb": 1024**3,
    "GB": 1024**3,
}


def assert_same_table(ours, theirs):
    """Byte for byte, except for the last digit of a number: torch adds up floating-point us, firelane integer ns.

    One more in the last digit may make a number longer (9.999us, 10.000us) or change its unit (999.999us, 1.000ms).
    """
    assert len(ours.splitlines()) == len(theirs.splitlines())
    for our, their in zip(ours.splitlines(), theirs.splitlines(), strict=True):
        if our == their:
            continue
        assert NUMBER.sub("#", our) == NUMBER.sub("#", their)
        for (a, a_unit), (b, b_unit) in zip(NUMBER.findall(our), NUMBER.findall(their), strict=True):
            a_scale, b_scale = SCALE.get(a_unit, 1), SCALE.get(b_unit, 1)
            last_digit = max(a_scale * 10 ** -len(a.split(".")[1]), b_scale * 10 ** -len(b.split(".")[1]))
            assert abs(float(a) * a_scale - float(b) * b_scale) < 1.5 * last_digit, (our, their)


@pytest.mark.parametrize("our, their", [("     9.999us", "    10.000us"), ("   999.999us", "     1.000ms")])
def test_a_number_that_grew_a_digit_by_rounding_is_the_same_number(our, their):
    assert_same_table(our, their)


@pytest.mark.parametrize(
    "our, their", [("     9.997us", "    10.000us"), ("     1.000us", "     1.000ms"), ("9.999us  a", "10.000us  b")]
)
def test_a_different_number_is_not_taken_for_a_rounded_one(our, their):
    with pytest.raises(AssertionError):
        assert_same_table(our, their)


# ---- programs on the CPU ----


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


def conv_net(torch):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, stride=2),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 8 * 8, 10),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(4, 3, 16, 16)

    def run():
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1, 2, 3]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    x = torch.randn(2, 10, 32)

    def run():
        (layer(x).to(torch.float64).sum() * 2).backward()

    return run


def nested_ranges(torch):
    from torch.profiler import record_function

    def run():
        with record_function("outer"):
            with record_function("twin"), record_function("twin"), record_function("twin"):
                a = torch.ones(64, 64) @ torch.ones(64, 64)
            with record_function("inner"):
                kept = torch.cat([a, a])
            with record_function("aten::relu"):
                torch.relu(a)
        del kept  # freed outside any op
        torch.stack([a[i] for i in range(40)])

    return run


def threads(torch):
    def work():
        for _ in range(3):
            torch.randn(32, 32) @ torch.randn(32, 32)

    def run():
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        work()
        for worker in workers:
            worker.join()

    return run


PROGRAMS = [conv_net, transformer, nested_ranges, threads]
FLAGS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "flops": {"with_flops": True, "record_shapes": True},
    "stack": {"with_stack": True},
    "everything": {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_stack": True},
}


def profiled(torch, program, path, *, all_threads=False, verbose=False, **flags):
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile, schedule

    run = program(torch)
    run()
    config = _ExperimentalConfig(profile_all_threads=all_threads, verbose=verbose)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        experimental_config=config,
        **flags,
    ) as prof:
        for _ in range(3):
            run()
            prof.step()
    prof.export_chrome_trace(str(path))
    return prof


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_rows_and_table_match_torch(torch, tmp_path, program, flags):
    trace = tmp_path / "trace.json"
    prof = profiled(torch, program, trace, all_threads=program is threads, **FLAGS[flags])
    averages = prof.key_averages()
    assert_same_rows(firelane_rows(trace), torch_rows(averages))
    assert_same_table(firelane("ops", trace), averages.table())
    assert_same_table(
        firelane("ops", trace, "--sort-by", "cpu_time_total", "--rows", "7", "--top-level", "--time-unit", "ms"),
        averages.table("cpu_time_total", row_limit=7, top_level_events_only=True, time_unit="ms"),
    )


def test_rows_cover_the_work_of_all_threads(torch, tmp_path):
    trace = tmp_path / "trace.json"
    profiled(torch, threads, trace, all_threads=True)
    assert {row["name"]: row["count"] for row in firelane_rows(trace)}["aten::matmul"] == 2 * 4 * 3


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_rows_by_shape_with_flops_match_torch(torch, tmp_path, program):
    trace = tmp_path / "trace.json.gz"
    prof = profiled(torch, program, trace, record_shapes=True, with_flops=True, profile_memory=True)
    averages = prof.key_averages(group_by_input_shape=True)
    fields = (*KEY, *NUMBERS, "flops")
    assert_same_rows(firelane_rows(trace, "--group-by-input-shape"), torch_rows(averages), fields)
    assert_same_table(
        firelane("ops", trace, "--group-by-input-shape", "--sort-by", "self_cpu_memory_usage"),
        averages.table("self_cpu_memory_usage"),
    )


def test_rows_by_stack_match_a_verbose_recording(torch, tmp_path):
    def inference(torch):
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))

        def run():
            with torch.no_grad():
                return net(torch.ones(2, 8)).softmax(-1)

        return run

    trace = tmp_path / "trace.json"
    prof = profiled(torch, inference, trace, with_stack=True, verbose=True)
    averages = prof.key_averages(group_by_stack_n=4)
    assert_same_rows(firelane_rows(trace, "--group-by-stack", "4"), torch_rows(averages))
    assert_same_table(firelane("ops", trace, "--group-by-stack", "4"), averages.table())


def test_stacks_need_no_verbose_recording(torch, tmp_path):
    trace = tmp_path / "trace.json"
    prof = profiled(torch, conv_net, trace, with_stack=True)
    assert all(not avg.stack for avg in prof.key_averages(group_by_stack_n=2)), (
        "torch fills them now: compare with them"
    )
    rows = firelane_rows(trace, "--group-by-stack", "2")
    stacks = {row["name"]: row["stack"] for row in rows}
    assert "conv.py" in stacks["aten::conv2d"]
    assert stacks["ConvolutionBackward0"] == stacks["aten::conv2d"], (
        "backward ops show where their forward op was called"
    )
    total = sum(row["self_cpu_time_total_ns"] for row in rows)
    assert total == sum(row["self_cpu_time_total_ns"] for row in firelane_rows(trace)), "grouping loses nothing"


def test_flops_and_source_are_under_their_own_headers(torch, tmp_path):
    trace = tmp_path / "trace.json"
    profiled(torch, conv_net, trace, record_shapes=True, with_flops=True, with_stack=True)
    lines = firelane("ops", trace, "--group-by-stack", "1", "--sort-by", "flops").splitlines()
    source, flops = lines[1].index("Source Location"), lines[1].index("Total ")
    assert "conv2d" in lines[3][source:flops]
    assert re.fullmatch(r"\s*[\d.]+\s*", lines[3][flops - 1 :])


# ---- recorded on a GPU, with torch's own results ----


def expected(name):
    with gzip.open(DATA / f"{name}.expected.gz", "rt") as file:
        answer = json.load(file)
    rows = [
        {
            **row,
            "name": row["key"],
            "on_device": row["device_type"] != "DeviceType.CPU",
            "is_top_level": row["top"],
            "input_shapes": str(row["input_shapes"]) if row["input_shapes"] != "" else None,
            "stack": ";".join(row["stack"]) or None,
            **{f"{name}_ns": round(row[name] * 1000) for name in TIMES},
            **{f"{name}_bytes": row[name] for name in MEMORY},
        }
        for row in answer["rows"]
    ]
    return rows, answer["table"]


def test_gpu_rows_and_table_match_torch():
    rows, table = expected("ops_gpu_plain")
    trace = DATA / "ops_gpu_plain.json.gz"
    assert_same_rows(firelane_rows(trace), rows)
    assert_same_table(firelane("ops", trace, "--sort-by", "cuda_time_total"), table)


def test_gpu_rows_with_memory_shapes_and_flops_match_torch_except_for_waits():
    def by_shape(rows, fields):
        sums = {}
        for row in rows:
            if row["name"] in WAITS:
                continue
            values = comparable(row, [*KEY, *fields])
            key = tuple(values[k] for k in KEY if k != "stack")
            sums.setdefault(key, dict.fromkeys(fields, 0))
            for field in fields:
                sums[key][field] += values[field]
        return sums

    # torch counts waits as device work and adds them to the op; firelane does not. Everything else is equal.
    fields = ["count", "flops", *(f"{t}_ns" for t in TIMES[:2]), *(f"{m}_bytes" for m in MEMORY)]
    rows, _ = expected("ops_gpu_full")
    ours = firelane_rows(DATA / "ops_gpu_full.json.gz", "--group-by-input-shape")
    assert by_shape(ours, fields) == by_shape(rows, fields)
    assert not WAITS & {row["name"] for row in ours}


@pytest.mark.parametrize("trace", sorted(DATA.glob("*.json.gz")), ids=lambda p: p.name)
def test_device_time_is_the_sum_of_all_kernels_memcpys_and_memsets(trace):
    with gzip.open(trace, "rt") as file:
        events = json.load(file)["traceEvents"]
    work = sum(
        round(event["dur"] * 1000)
        for event in events
        if event.get("ph") == "X" and event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    answer = json.loads(firelane("ops", trace, "--json"))
    rows = answer["rows"]
    device = [row for row in rows if row["device_type"] != "cpu" and not row["is_user_annotation"]]
    assert sum(row["self_device_time_total_ns"] for row in device) == work == answer["self_device_time_total_ns"]
    host = sum(row["self_device_time_total_ns"] for row in rows if row["device_type"] == "cpu")
    assert host + answer["unattributed_device_time_ns"] == work
