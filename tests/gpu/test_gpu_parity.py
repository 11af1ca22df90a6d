"""The same program under firelane and under torch.profiler: the same kernels on the same streams, from the same ops.

The pairs come from the folder FIRELANE_GPU_PAIRS (record_both.py writes one where only the recorder is built), are
recorded here if there is a GPU, or come from pairs/, which was recorded on an H200 (torch 2.11.0+cu130).
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
firelane = pytest.importorskip("firelane", reason="the reader is not built here: record_both.py and FIRELANE_GPU_PAIRS")

NAMES = ["train", "streams", "copies", "graph", "threads", "decode", "compiled", "out_of_memory", "workers"]


@pytest.fixture(scope="session")
def pairs(tmp_path_factory) -> Path:
    if folder := os.environ.get("FIRELANE_GPU_PAIRS"):
        return Path(folder)
    try:
        import torch
    except ImportError:
        return HERE / "pairs"
    if not torch.cuda.is_available():
        return HERE / "pairs"
    folder = tmp_path_factory.mktemp("pairs")
    subprocess.run([sys.executable, str(HERE / "record_both.py"), str(folder)], check=True, timeout=600)
    return folder


def both(pairs: Path, name: str):
    return firelane.open(str(pairs / f"{name}.lane")), firelane.open(str(pairs / f"{name}.json.gz"))


def rows(trace, query: str) -> list[tuple]:
    return [tuple(row.values()) for row in trace.sql(query)]


WORK = "kind in ('kernel', 'copy', 'set')"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_work_on_the_same_streams(pairs, name):
    ours, torchs = (
        collections.Counter(rows(t, f"select name, stream from device_slices where {WORK}")) for t in both(pairs, name)
    )
    assert ours == torchs


@pytest.mark.parametrize("name", NAMES)
def test_work_belongs_to_the_same_ops(pairs, name):
    query = f"""select d.name, coalesce(o.name, '') from device_slices d left join host_slices o on o.id = d.op
                where d.{WORK}"""
    ours, torchs = (collections.Counter(rows(t, query)) for t in both(pairs, name))
    # What torch.profiler links to no op (other threads, kernels that torch.compile launches) is linked here.
    linked = collections.Counter({pair: count for pair, count in torchs.items() if pair[1]})
    different = sum((linked - ours).values())
    assert different <= 0.001 * sum(linked.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_has_a_launch_and_starts_after_it(pairs, name):
    trace = both(pairs, name)[0]
    losses = {loss["name"]: loss["count"] for loss in trace.info["losses"]}
    assert losses.get("link.kernel_before_launch", 0) == 0
    assert losses.get("link.device_slice_without_launch", 0) == 0


def test_after_torch_profiler_the_same_work_is_recorded_without_callbacks(pairs):
    ours, torchs = (firelane.open(str(pairs / name)) for name in ("train_after_torch.lane", "train.json.gz"))
    query = f"select name, stream from device_slices where {WORK}"
    assert collections.Counter(rows(ours, query)) == collections.Counter(rows(torchs, query))
    assert all(row[0] is not None for row in rows(ours, f"select launch from device_slices where {WORK}"))


# torch.profiler does not see the memory of other threads.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "threads"])
def test_the_same_device_memory_was_requested(pairs, name):
    query = "select kind, count(*), sum(bytes) from memory_events where device_type = 1 group by kind order by kind"
    ours, torchs = (rows(t, query) for t in both(pairs, name))
    assert ours == torchs


def test_allocator_state_before_and_after_matches_torch(pairs):
    states = {"active_allocated": "allocated", "active_pending_free": "waiting", "active_awaiting_free": "waiting"}
    accounts = sorted(pairs.glob("*.memory.json"))
    if not accounts:
        pytest.skip("these pairs were recorded without torch's own account")
    for account in accounts:
        said = json.loads(account.read_text())
        trace = firelane.open(str(account).removesuffix(".memory.json") + ".lane")
        blocks = {
            (
                segment["device"],
                segment["address"] + sum(size for size, _ in segment["blocks"][:i]),
                size,
                states.get(state, "free"),
            )
            for segment in said["before"]
            for i, (size, state) in enumerate(segment["blocks"])
        }
        assert set(rows(trace, "select device, address, bytes, state from allocator_blocks")) == blocks, account.name
        streams = {
            (segment["device"], segment["address"], segment["bytes"], segment["stream"]) for segment in said["before"]
        }
        query = "select device, address, bytes, stream from allocator_segments where bytes > 0"
        assert set(rows(trace, query)) == streams, account.name
        end = next(row for row in trace.memory(table="allocator") if row["moment"] == "end")
        free = [size for s in said["after"] for size, state in s["blocks"] if state not in states]
        assert end["reserved_bytes"] == sum(s["bytes"] for s in said["after"]), account.name
        assert end["allocated_bytes"] == sum(
            n for s in said["after"] for n, state in s["blocks"] if state == "active_allocated"
        ), account.name
        assert end["largest_free_bytes"] == max(free, default=0), account.name


@pytest.mark.parametrize("name", NAMES)
def test_work_that_crosses_the_window_is_marked_and_counted(pairs, name):
    trace = both(pairs, name)[0]
    losses = {loss["name"]: loss["count"] for loss in trace.info["losses"]}
    marked = rows(trace, "select count(*) from device_slices where window is not null")
    assert marked == [(losses.get("record.work_across_window", 0),)]


@pytest.mark.parametrize("name", NAMES)
def test_occupancy_matches_torch_where_torch_reports_it(pairs, name):
    query = """select name, grid_x, grid_y, grid_z, block_x, round(occupancy_percent) from kernels
               where occupancy_percent > 0"""
    ours, torchs = collections.defaultdict(set), collections.defaultdict(set)
    for trace, into in zip(both(pairs, name), (ours, torchs), strict=True):
        for *launch, percent in rows(trace, query):
            into[tuple(launch)].add(percent)
    assert {launch: said for launch, said in torchs.items() if not ours[launch] & said} == {}
