"""Hardware metrics of an H200 recording (tests/gpu/metric_phases.py) in SQL, exports and the roofline. Needs no GPU."""

import collections
from pathlib import Path

import pytest

import firelane

RECORDING = Path(__file__).parent.parent / "data/h200_metrics.lane"
COUNTERS = "select time_ns, name, value from counters where pid = 'GPU 0 Counters' order by name, time_ns"


@pytest.fixture(scope="module")
def trace():
    return firelane.open(RECORDING)


def means(trace) -> dict[str, dict[str, float]]:
    """Of each metric in each phase; its first and last milliseconds may be the phase's before or after it."""
    rows = trace.sql("""
        select r.name as phase, c.name as metric, avg(c.value) as value
        from host_slices r join counters c
        on c.time_ns between r.start_ns + 4000000 and r.start_ns + r.duration_ns - 4000000
        where r.name like 'phase %' and c.pid = 'GPU 0 Counters' group by r.name, c.name""")
    out: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for row in rows:
        out[row["phase"].removeprefix("phase ")][row["metric"].split(".")[0]] = row["value"]
    return out


def test_each_phase_uses_what_it_was_written_to_use(trace):
    of = means(trace)
    tensor, reads, writes = "sm__pipe_tensor_cycles_active_realtime", "dram__bytes_read", "dram__bytes_write"
    assert of["matmul"][tensor] > 80 and of["add"][tensor] < 1
    assert of["add"][reads] + of["add"][writes] > 60 and of["idle"][reads] + of["idle"][writes] < 1
    assert of["from host"]["pcie__read_bytes"] > 20e9 > of["matmul"]["pcie__read_bytes"]


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_exports_read_back_the_same_samples(trace, to, tmp_path):
    path = tmp_path / ("out.json" if to == "chrome" else "out.pftrace")
    trace.export(path, to=to)
    again = firelane.open(path)
    ours = [tuple(row.values()) for row in trace.sql(COUNTERS)]
    theirs = [tuple(row.values()) for row in again.sql(COUNTERS)]
    assert len(ours) == len(theirs) > 100
    assert [row[1] for row in ours] == [row[1] for row in theirs]
    assert [row[2] for row in theirs] == pytest.approx([row[2] for row in ours], rel=1e-6)


def test_the_roofline_says_what_was_measured(trace):
    rows = {row["op"]: row for row in trace.roofline()}
    assert (rows["aten::add"]["bound"], rows["aten::add"]["bound_from"]) == ("memory", "measured")
    assert (rows["aten::mm"]["bound"], rows["aten::mm"]["bound_from"]) == ("compute", "measured")
    assert rows["aten::mm"]["tensor_percent"] > 80 and rows["aten::add"]["dram_percent"] > 60
