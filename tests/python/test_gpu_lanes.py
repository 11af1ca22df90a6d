"""firelane's recordings of an H200 (tests/data/README.md): links, device columns, exports, verdicts. Needs no GPU."""

import collections
import json
from pathlib import Path

import pytest

import firelane

DATA = Path(__file__).parent.parent / "data"
PROGRAMS = sorted(json.loads((DATA / "h200_true_steps.json").read_text())["programs"])
LANES = ["train", "streams", *PROGRAMS]
WORK = "kind in ('kernel', 'copy', 'set')"


def lane(name):
    return firelane.open(DATA / f"h200_{name}.lane")


def work_of(trace):
    query = f"""select d.name, d.stream, l.name as launch, o.name as op from device_slices d
                left join host_slices l on l.id = d.launch left join host_slices o on o.id = d.op where d.{WORK}"""
    return collections.Counter(tuple(row.values()) for row in trace.sql(query))


@pytest.mark.parametrize("name", LANES)
def test_all_work_has_its_launch_and_its_op(name):
    trace = lane(name)
    work = work_of(trace)
    assert sum(work.values()) > 20
    assert all(launch and op for _, _, launch, op in work)
    losses = {loss["name"] for loss in trace.info["losses"]}
    assert not {"link.kernel_before_launch", "link.device_slice_without_launch"} & losses


@pytest.mark.parametrize("name", LANES)
def test_device_time_of_ops_adds_up_to_the_work_they_launched(name):
    trace = lane(name)
    total = sum(row["duration_ns"] for row in trace.sql(f"select duration_ns from device_slices where {WORK}"))
    rows = trace._key_averages()
    assert sum(row["self_device_time_total_ns"] for row in rows if not row["on_device"]) == total
    assert (
        sum(row["self_device_time_total_ns"] for row in rows if row["on_device"] and not row["is_user_annotation"])
        == total
    )
    assert all(row["device_time_total_ns"] >= row["self_device_time_total_ns"] for row in rows)


@pytest.mark.parametrize("name", ["train", "gpt_plain"])
def test_a_chrome_export_contains_the_same_work(name, tmp_path):
    trace = lane(name)
    trace.export(tmp_path / "out.json", to="chrome")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert work_of(firelane.open(tmp_path / "out.json")) == work_of(trace)
    ids = {e["args"]["External id"]: e["name"] for e in events if e.get("cat") == "cpu_op"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    starts = {e["id"] for e in events if e.get("cat") == "ac2g" and e["ph"] == "s"}
    assert kernels
    for kernel in kernels:
        assert ids[kernel["args"]["External id"]]
        assert kernel["args"]["correlation"] in starts


def test_calls_come_from_callbacks_and_clocks_are_mapped_within_a_microsecond():
    info = lane("gpt_plain").info
    assert info["cuda_calls_by"] == "callbacks"
    assert 0 < info["device_clock_error_ns"] < 1000
    assert info["device_clock_readings"] >= 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_recording_gets_a_verdict(name):
    diagnosis = lane(name).diagnosis
    assert diagnosis["step"]["step_ns"] > 0
