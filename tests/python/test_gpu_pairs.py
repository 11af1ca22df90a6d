"""Files of one run on a GPU, joined (tests/data/gpu_pairs), against what json and pickle read from them, and against
the steps of the same programs that were timed without a profiler."""

import gzip
import json
import os
import pickle
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
FOLDER = ROOT / "tests" / "data" / "gpu_pairs"

pytestmark = pytest.mark.skipif(
    not (FOLDER / "true_steps.json").exists(),
    reason="no gpu_pairs: python tests/data/make_gpu_pairs.py tests/data/gpu_pairs on a machine with a GPU",
)


def ask(verb, name, *more):
    joined = ["--execution-trace", str(FOLDER / f"{name}.et.json.gz")] if name != "memory" else []
    done = subprocess.run(
        [FIRELANE, verb, str(FOLDER / f"{name}.run.json.gz"), *joined, *more, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows(name, query):
    done = subprocess.run(
        [
            *(FIRELANE, "sql", str(FOLDER / f"{name}.run.json.gz"), query),
            *("--execution-trace", str(FOLDER / f"{name}.et.json.gz"), "--json"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["rows"]


def unpacked(name):
    return json.loads(gzip.decompress((FOLDER / name).read_bytes()))


def true_ns(name):
    return json.loads((FOLDER / "true_steps.json").read_text())["median_step_ns"][name]


def storages(values):
    """Of a node's inputs or outputs: tensors are [id, storage, offset, elements, bytes, device]."""
    if isinstance(values, list) and len(values) == 6 and isinstance(values[5], str) and isinstance(values[0], int):
        return {values[1]}
    return set().union(*[storages(item) for item in values]) if isinstance(values, list) else set()


@pytest.mark.parametrize("name", ["one_stream", "two_streams", "late_event"])
def test_every_scan_waits_for_whoever_wrote_its_input(name):
    nodes = unpacked(f"{name}.et.json.gz")["nodes"]
    scans = {n["id"] for n in nodes if n["name"] == "aten::cumsum"}
    writers, wanted = {}, set()  # ids of storages are used again: the last writer counts, whatever it is
    for node in sorted(nodes, key=lambda n: n["id"]):
        reads = storages(node["inputs"]["values"])
        if node["id"] in scans:
            wanted |= {(node["id"], writers[s]) for s in reads if writers.get(s) in scans}
        for storage in storages(node["outputs"]["values"]) - reads:
            writers[storage] = node["id"]
    assert wanted
    found = {
        (row["node"], row["producer"])
        for row in rows(
            name,
            "select op.data_node as node, d.producer_node as producer from data_dependencies d "
            "join op_details op on op.id = d.op join host_slices h on h.id = op.slice "
            "join op_details p on p.id = d.producer join host_slices by on by.id = p.slice "
            "where d.use = 'read' and h.name = 'aten::cumsum' and by.name = 'aten::cumsum'",
        )
    }
    assert found == wanted


@pytest.mark.parametrize("name", ["one_stream", "two_streams", "late_event"])
def test_all_kernels_of_the_trace_are_there_and_linked(name):
    kernels = [e for e in unpacked(f"{name}.run.json.gz")["traceEvents"] if e.get("cat") == "kernel"]
    [row] = rows(
        name,
        "select count(*) as calls, sum(duration_ns) as ns, count(op) as linked "
        "from device_slices where kind = 'kernel'",
    )
    assert (row["calls"], row["linked"]) == (len(kernels), len(kernels))
    assert row["ns"] == pytest.approx(1000 * sum(e["dur"] for e in kernels), abs=len(kernels))


def test_without_its_order_the_one_stream_takes_what_two_streams_took():
    then = ask("whatif", "one_stream", "--data-order")["changed_ns"]
    assert then == pytest.approx(true_ns("two_streams"), rel=0.10)
    assert true_ns("one_stream") > 1.5 * true_ns("two_streams")


def test_a_wait_that_was_too_long_is_given_up_as_the_program_with_an_early_event_does():
    then = ask("whatif", "late_event", "--data-order")["changed_ns"]
    assert then == pytest.approx(true_ns("early_event"), rel=0.10)
    assert true_ns("late_event") > 1.5 * true_ns("early_event")


def test_streams_that_need_nothing_more_gain_nothing():
    answer = ask("whatif", "two_streams", "--data-order")
    assert answer["changed_ns"] == pytest.approx(true_ns("two_streams"), rel=0.10)


def test_between_streams_the_path_follows_data_and_nothing_is_left_unknown():
    for name, edge in (("two_streams", "data"), ("late_event", "data"), ("one_stream", "stream")):
        answer = ask("critical-path", name)
        edges = {row["edge"]: row["time_ns"] for row in answer["edges"]}
        classes = {row["class"]: row["time_ns"] for row in answer["classes"]}
        assert edges[edge] == max(edges.values()), (name, edges)
        assert classes["unknown"] == 0, (name, classes)
    # The event of late_event is on the path, and so is all that it waits for.
    answer = ask("critical-path", "late_event", "--rows", "0")
    scans = sum("scan_innermost" in (piece["name"] or "") for piece in answer["pieces"])
    assert {row["edge"] for row in answer["edges"]} >= {"data", "other_stream"}
    assert scans == 4 * 7, "in each step the first scan, three behind it, and three behind the event"


# -- a memory snapshot and the trace of the same process -------------------------------------------


def joined_memory(verb, *more):
    return ask(verb, "memory", "--snapshot", str(FOLDER / "memory.snapshot.pickle.gz"), *more)


def memory_window():
    trace = unpacked("memory.run.json.gz")
    slices = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") != "Trace"]
    base_us = trace["baseTimeNanoseconds"] / 1000
    return base_us + min(e["ts"] for e in slices), base_us + max(e["ts"] + e["dur"] for e in slices)


def test_a_snapshot_joins_the_trace_of_its_process_event_by_event():
    begin, end = memory_window()
    snapshot = pickle.loads(gzip.decompress((FOLDER / "memory.snapshot.pickle.gz").read_bytes()))
    events = snapshot["device_traces"][0]
    inside = [e for e in events if begin - 100 <= e["time_us"] <= end + 100]
    done = subprocess.run(
        [
            *(FIRELANE, "sql", str(FOLDER / "memory.run.json.gz")),
            "select kind, count(*) as n, sum(bytes) as bytes from memory_events where device_type = 1 group by kind",
            *("--snapshot", str(FOLDER / "memory.snapshot.pickle.gz"), "--json"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {row["kind"]: row for row in json.loads(done.stdout)["rows"]}
    for kind, action, sign in (("alloc", "alloc", 1), ("free", "free_requested", -1)):
        wanted = [e["size"] for e in inside if e["action"] == action]
        assert (found[kind]["n"], found[kind]["bytes"]) == (len(wanted), sign * sum(wanted))


def test_steps_that_a_snapshot_has_as_annotations_were_counted_twice():
    steps = [e for e in unpacked("memory.run.json.gz")["traceEvents"] if e.get("name", "").startswith("ProfilerStep#")]
    of_host = [e for e in steps if e.get("cat") == "user_annotation"]
    assert joined_memory("steps")["step_count"] == len(of_host) == 4


def test_the_clocks_of_both_differ_by_microseconds():
    [file] = joined_memory("info")["joined"]
    assert abs(file["clock_offset_ns"]) < 1_000_000
    assert file["used"] < file["entries"]
