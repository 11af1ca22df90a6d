"""Memory snapshots and NCCL flight recorders against what Python's own pickle and json read from the same file."""

import collections
import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import firelane

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))


def sample(name):
    """A real dump; the test is skipped where those are not."""
    folders = [Path(os.environ["FIRELANE_SAMPLES"])] if "FIRELANE_SAMPLES" in os.environ else []
    folders += [up / "shared" / "traces" / "other" for up in ROOT.parents]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"no sample {name} here; set FIRELANE_SAMPLES to its folder")


def hangs(folder, *, code=0):
    done = subprocess.run([FIRELANE, "hangs", "--json", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


# -- memory snapshots -------------------------------------------------------------------------


def check_snapshot(path, snapshot):
    """Everything that the trace says about memory, recomputed from the pickle."""
    trace = firelane.open(path)
    kinds = collections.Counter()
    allocated = 0
    for events in snapshot["device_traces"]:
        kinds.update(event["action"] for event in events)
        allocated += sum(event["size"] for event in events if event["action"] == "alloc")
    rows = collections.Counter(row["kind"] for row in trace.memory_events)
    assert (rows["alloc"], rows["free"], rows["out_of_memory"]) == (
        kinds["alloc"],
        kinds["free_requested"],
        kinds["oom"],
    )
    assert collections.Counter(row["kind"] for row in trace.allocator_events) == {
        name: count for name, count in kinds.items() if name.startswith("segment_") or name == "free_completed"
    }
    assert sum(row["bytes"] for row in trace.memory_events if row["kind"] == "alloc") == allocated
    return trace


def test_a_snapshot_has_every_event_of_the_pickle():
    path = sample("memory_snapshot_h200.pickle")
    snapshot = pickle.loads(path.read_bytes())
    trace = check_snapshot(path, snapshot)
    assert trace.info["format"] == "PyTorch memory snapshot"
    # What is held at the end: the state at the start and all events after it, against the segments of the pickle.
    held = collections.Counter(block["state"] for segment in snapshot["segments"] for block in segment["blocks"])
    last = trace.memory(table="allocator_curve", curve=True)[-1]
    assert last["segments"] == len(snapshot["segments"])
    assert last["reserved_bytes"] == sum(segment["total_size"] for segment in snapshot["segments"])
    allocated = sum(segment["allocated_size"] for segment in snapshot["segments"])
    assert held["active_allocated"] and abs(last["allocated_bytes"] - allocated) <= allocated // 100


def test_stacks_of_a_snapshot_are_those_of_the_pickle():
    path = sample("memory_snapshot_h200.pickle")
    snapshot = pickle.loads(path.read_bytes())
    expected = collections.Counter()
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            python = [frame for frame in event["frames"] if frame["filename"].endswith(".py")]
            expected[";".join(f"{f['filename']}({f['line']}): {f['name']}" for f in python)] += 1
    found = collections.Counter()
    for row in firelane.open(path).memory_events:
        if row["kind"] == "alloc":
            frames = [frame for frame in (row["stack"] or "").split(";") if not frame.startswith("autograd")]
            found[";".join(frames)] += 1
    assert found == expected


def test_the_owners_at_the_peak_of_a_snapshot_are_lines_of_the_users_code():
    trace = firelane.open(sample("memory_snapshot_h200.pickle"))
    owners = list(trace.memory(table="owners"))
    assert any(row["place"] and row["place"].startswith("make_samples.py(") for row in owners)
    assert any(row["op"] and row["op"].startswith("aten::") for row in owners)


def event(action, addr, size, time_us, frames=()):
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "frames": list(frames),
    }


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_protocols_of_pickle_give_the_same(tmp_path, protocol):
    snapshot = {
        "segments": [],
        "device_traces": [[event("alloc", 4096 + 512 * i, 512, i) for i in range(3000)], []],
        "allocator_settings": {"expandable_segments": False, "garbage_collection_threshold": 0.5},
    }
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol))
    assert len(check_snapshot(path, snapshot).memory_events) == 3000


@pytest.mark.parametrize("harm", [os.system, print, collections.OrderedDict])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, harm):
    class Harmful:
        def __reduce__(self):
            return harm, ()

    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps({"segments": [Harmful()], "device_traces": []}))
    with pytest.raises(firelane.TraceError, match="refused: pickle opcode 0x") as caught:
        firelane.open(path)
    assert "\n" not in str(caught.value)


# -- flight recorders -------------------------------------------------------------------------


def check_flight(path, dump):
    trace = firelane.open(path)
    expected = sorted(
        (entry["profiling_name"], entry["process_group"][0], entry["collective_seq_id"], entry["state"])
        for entry in dump["entries"]
    )
    comms = list(trace.comm_details)
    found = []
    for row in trace.host_slices:
        comm = comms[trace.op_details[row["detail"]]["comm"]]
        found.append((row["name"], comm["group_name"], comm["sequence"], comm["state"]))
    assert sorted(found) == expected
    spans = sorted(
        entry["time_discovered_completed_ns"] - (entry["time_discovered_started_ns"] or entry["time_created_ns"])
        for entry in dump["entries"]
        if entry["state"] == "completed"
    )
    assert sorted(row["duration_ns"] for row in trace.host_slices) == spans
    return trace


def test_a_flight_recorders_pickle_and_json_give_what_python_reads():
    path = sample("nccl_flight_recorder_h200.pickle")
    of_pickle = check_flight(path, pickle.loads(path.read_bytes()))
    path = sample("nccl_flight_recorder_h200.json")
    of_json = check_flight(path, json.loads(path.read_bytes()))
    for trace in (of_pickle, of_json):
        assert trace.info["format"] == "NCCL flight recorder" and trace.info["backend"] == "nccl"
        assert [group["name"] for group in trace.info["process_groups"]] == ["0", "1"]


def ranks_of(dump, world_size):
    """The dump of one rank as those of a job: all members of its groups have called the same."""
    for rank in range(world_size):
        own = copy.deepcopy(dump)
        for group in own["pg_config"].values():
            group["ranks"] = str(list(range(world_size)))
        yield rank, own


def test_a_rank_that_stops_is_named_with_the_collective_that_it_did_not_call(tmp_path):
    dump = pickle.loads(sample("nccl_flight_recorder_h200.pickle").read_bytes())
    stopped = dump["entries"][20]
    for rank, own in ranks_of(dump, 4):
        if rank == 2:
            del own["entries"][20:]
        else:
            for entry in own["entries"][20:]:
                entry.update(state="scheduled", retired=False, time_discovered_completed_ns=None)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(own, 2))
    found = hangs(tmp_path)
    culprit = found["culprits"][0]
    assert culprit["rank"] == 2 and culprit["blocked_ranks"] == "0, 1, 3"
    name = stopped["profiling_name"].removeprefix("nccl:")
    assert culprit["missing"] == f"{name} #{stopped['collective_seq_id']} of {stopped['process_group'][1]}"
    assert found["answer"].startswith(f"rank 2 holds up 3 other ranks: it has not called {name}")
    (tmp_path / "nccl_trace_rank_3").unlink()
    found = hangs(tmp_path)
    assert found["culprits"][0]["rank"] == 2 and found["absent_ranks"] == "3"


# Three ranks call a collective that rank 2 does not; each writes its recorder once all have come that far. Files are
# the only meeting point: no port, and no time within which anything must have happened.
HANGING_RANKS = """
import os, quick_torch, sys, time
import torch, torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

world, folder = int(sys.argv[1]), sys.argv[2]
rank = next((rank for rank in range(world) if os.fork() == 0), None)
if rank is None:  # one that fails would be waited for by the others: they are killed as this process's group
    sys.exit(any(os.wait()[1] for _ in range(world)) and os.killpg(0, 9))


def meet(what):
    open(f"{folder}/{what}{rank}", "w").close()
    while not all(os.path.exists(f"{folder}/{what}{each}") for each in range(world)):
        time.sleep(0.01)


dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/store", world), rank=rank, world_size=world)
tensor_parallel = dist.new_group([0, 1], group_desc="tp")
x = torch.ones(1000)
for _ in range(3):
    dist.all_reduce(x)
if rank < 2:
    dist.all_reduce(x, group=tensor_parallel)
if rank != 2:
    dist.all_gather_into_tensor(torch.empty(1000 * world), x, async_op=True)
meet("called")
for form, dump in (("pickle", _dump_fr_trace()), ("json", _dump_fr_trace_json())):
    with open(f"{folder}/{form}/rank_{rank}", "wb") as out:
        out.write(dump)
meet("dumped")
os._exit(0)  # the collective above never ends
"""


def test_ranks_that_torch_ran_and_that_hang_are_told_apart(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "hang.py"
    script.write_text(HANGING_RANKS)
    for form in ("pickle", "json"):
        (tmp_path / form).mkdir()
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "2000", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), "4", str(tmp_path)]
    assert subprocess.run(command, env=environment, check=False, start_new_session=True).returncode == 0
    for form in ("pickle", "json"):
        found = hangs(tmp_path / form)
        assert (found["dump_count"], found["group_count"], found["world_size"]) == (4, 2, 4)
        assert [(row["rank"], row["blocked_ranks"]) for row in found["culprits"]] == [(2, "0, 1, 3")]
        assert found["culprits"][0]["missing"] == "all_gather #4 of default_pg"
        assert not found["mismatches"]


def test_a_healthy_job_and_a_mismatched_one(tmp_path):
    dump = json.loads(sample("nccl_flight_recorder_h200.json").read_bytes())
    for rank, own in ranks_of(dump, 2):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(own))
    found = hangs(tmp_path)
    assert not found["hangs"] and not found["mismatches"] and found["matched_count"] == len(dump["entries"])
    own["entries"][0]["input_sizes"] = [[7]]
    (tmp_path / "rank1.json").write_text(json.dumps(own))
    found = hangs(tmp_path)
    assert [(row["differs"], row["ranks"]) for row in found["mismatches"]] == [("sizes", "0"), ("sizes", "1")]


def test_dumps_that_cannot_be_told_apart_are_refused(tmp_path):
    dump = {"version": "2.10", "entries": [], "pg_config": {}}
    for name in ("a_1", "b_1"):
        (tmp_path / name).write_bytes(pickle.dumps(dump, 2))
    assert "rank 1 again" in hangs(tmp_path, code=1)
    nameless = tmp_path / "none"
    nameless.mkdir()
    (nameless / "dump").write_bytes(pickle.dumps(dump, 2))
    assert "which rank" in hangs(nameless, code=1)


BASE_US = 1_704_067_200_000_000  # Unix time that the trace below counts from


def write_pair(folder, *, clock_us=0, own=()):
    """A trace from 1,000 to 3,000 us after the base, and a snapshot whose history begins before and ends after it."""
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000, "dur": 2000, "args": {}}
    memory = [
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "pid": 1,
            "tid": 1,
            "ts": ts,
            "args": {"Device Type": 1, "Device Id": 0, "Bytes": size, "Addr": address},
        }
        for ts, address, size in own
    ]
    trace = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_US * 1000, "traceEvents": [op, *memory]}
    (folder / "run.json").write_text(json.dumps(trace))
    frames = [{"name": "forward", "filename": "train.py", "line": 7}]

    def event(action, address, size, us):
        return {
            "action": action,
            "addr": address,
            "size": size,
            "stream": 0,
            "time_us": BASE_US + us + clock_us,
            "frames": frames,
        }

    block = {"requested_size": 1024, "frames": frames}
    snapshot = {
        "segments": [
            {
                "device": 0,
                "address": 4096,
                "total_size": 4096,
                "stream": 0,
                "segment_pool_id": (0, 0),
                "blocks": [
                    dict(block, address=4096, size=1024, state="active_allocated"),
                    dict(block, address=5120, size=1024, state="inactive"),
                    dict(block, address=6144, size=2048, state="active_allocated"),
                ],
            }
        ],
        "device_traces": [
            [
                event("segment_alloc", 4096, 4096, 100),
                event("alloc", 4096, 1024, 200),
                event("alloc", 5120, 1024, 1500),
                event("free_requested", 5120, 1024, 2500),
                event("free_completed", 5120, 1024, 2500),
                event("alloc", 6144, 2048, 3500),
            ]
        ],
    }
    (folder / "snap.pickle").write_bytes(pickle.dumps(snapshot))
    return folder / "run.json", folder / "snap.pickle"


def test_a_snapshot_lies_on_the_axis_of_the_trace(tmp_path):
    run, snapshot = write_pair(tmp_path)
    trace = firelane.open(run, snapshot=snapshot)
    events = trace.sql("select time_ns, bytes, address from memory_events")
    # The trace begins at 1,000 us: what was allocated before is state, what comes after it is left out.
    assert [(e["time_ns"] // 1000, e["address"]) for e in events] == [(500, 5120), (1500, 5120)]
    assert [b["address"] for b in trace.sql("select address from allocator_blocks")] == [4096]
    [joined] = trace.info["joined"]
    assert (joined["entries"], joined["used"], joined["clock_offset_ns"]) == (6, 3, None)


def test_the_memory_verb_counts_what_the_snapshot_says(tmp_path):
    run, snapshot = write_pair(tmp_path)
    done = subprocess.run(
        [FIRELANE, "memory", str(run), "--snapshot", str(snapshot), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [device] = json.loads(done.stdout)["devices"]
    assert device["peak_bytes"] == 2048  # 1,024 from before the trace, 1,024 in it


def test_the_viewer_s_map_has_the_segments_of_the_snapshot_at_a_time_of_the_trace(tmp_path):
    run, snapshot = write_pair(tmp_path)
    viewer = firelane._trace.Viewer(firelane.open(run, snapshot=snapshot))

    def allocated(at_us):
        target = f"/api/t/0/memory/segments?device=cuda:0&at_ns={at_us * 1000}"
        status, _, body = viewer.answer("GET", target, b"")
        assert status == 200, body
        [segment] = json.loads(body)["segments"]
        return [segment["address"] + block["offset"] for block in segment["blocks"] if block["state"] == "allocated"]

    assert allocated(700) == [4096, 5120]
    assert allocated(1700) == [4096]


def test_own_allocations_measure_the_clock_and_are_not_counted_twice(tmp_path):
    run, snapshot = write_pair(tmp_path, clock_us=30, own=[(1500, 5120, 1024)])
    trace = firelane.open(run, snapshot=snapshot)
    assert trace.info["joined"][0]["clock_offset_ns"] == 30_000
    assert [e["time_ns"] // 1000 for e in trace.sql("select time_ns from memory_events")] == [500, 1500]


def test_snapshots_that_do_not_belong_to_the_trace_are_refused(tmp_path):
    run, snapshot = write_pair(tmp_path, clock_us=60_000_000)
    with pytest.raises(firelane.TraceError, match="of two runs"):
        firelane.open(run, snapshot=snapshot)
    run, snapshot = write_pair(tmp_path, own=[(1500, 999_999, 64)])
    with pytest.raises(firelane.TraceError, match="not of the same process"):
        firelane.open(run, snapshot=snapshot)
