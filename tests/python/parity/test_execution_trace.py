"""Execution traces and torch's and our traces of the same run, joined, against what json reads from both files."""

import json

import pytest
import torch
from torch.profiler import ExecutionTraceObserver

import firelane
import firelane.profiler

CPU = [torch.profiler.ProfilerActivity.CPU]


def train():
    torch.manual_seed(0)
    w = torch.randn(16, 16, requires_grad=True)
    x = torch.randn(4, 16)
    for _ in range(2):
        loss = torch.relu(x @ w).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad)
            w.grad.zero_()


def pair(profile, folder):
    """The trace and the execution trace of one run."""
    observer = ExecutionTraceObserver().register_callback(str(folder / "et.json"))
    with profile(activities=CPU, execution_trace_observer=observer) as prof:
        train()
    prof.export_chrome_trace(str(folder / "run.json"))
    return folder / "run.json", folder / "et.json"


@pytest.fixture(scope="module", params=["torch", "firelane"])
def files(request, tmp_path_factory):
    profile = torch.profiler.profile if request.param == "torch" else firelane.profiler.profile
    return pair(profile, tmp_path_factory.mktemp(request.param))


def nodes_of(path):
    """Calls by id: name, rf_id, storages that it reads, and that it writes, as json has them."""
    found = {}
    for node in json.loads(path.read_text())["nodes"]:
        attrs = {a["name"]: a["value"] for a in node["attrs"]}
        if node["name"].startswith("[pytorch|"):
            continue

        def storages(value):
            if isinstance(value, list) and len(value) == 6 and isinstance(value[5], str) and isinstance(value[0], int):
                return [value[1]]
            return [s for item in value for s in storages(item)] if isinstance(value, list) else []

        inputs = [storages(v) for v in node["inputs"]["values"]]
        schema = attrs["op_schema"]
        arguments = schema[schema.find("(") + 1 : schema.rfind("->")].split(", ") if schema else []
        arguments = [a for a in arguments if a != "*"]
        changed = {s for a, ids in zip(arguments, inputs, strict=False) if "!" in a for s in ids}
        reads = {s for ids in inputs for s in ids}
        outputs = {s for v in node["outputs"]["values"] for s in storages(v)}
        found[node["id"]] = {
            "name": node["name"],
            "rf_id": attrs["rf_id"],
            "has_schema": bool(schema),
            "parent": node["ctrl_deps"],
            "reads": reads,
            "writes": (outputs - reads) | changed,
        }
    return found


def dependencies(trace):
    return trace.sql(
        """
        select op.data_node as node, d.producer_node as producer, d.use as use, own.name as name, other.name as of
        from data_dependencies d
        join op_details op on op.id = d.op join host_slices own on own.id = op.slice
        left join op_details p on p.id = d.producer left join host_slices other on other.id = p.slice
        """
    )


def test_every_call_is_joined_by_its_id(files):
    run, et = files
    trace = firelane.open(run, execution_trace=et)
    expected = {(n["rf_id"], n["name"], node) for node, n in nodes_of(et).items()}
    joined = {
        (r["call_id"], r["name"], r["data_node"])
        for r in trace.sql(
            "select call_id, data_node, name from op_details o join host_slices h on h.id = o.slice where data_node > 0"
        )
    }
    assert joined == expected
    [file] = trace.info["joined"]
    assert (file["entries"], file["used"]) == (len(expected), len(expected))


def test_dependencies_are_those_of_the_storages(files):
    run, et = files
    nodes = nodes_of(et)
    rows = dependencies(firelane.open(run, execution_trace=et))
    assert rows
    for row in rows:
        node, producer = nodes[row["node"]], nodes.get(row["producer"])
        if row["use"] == "unknown":
            assert not node["has_schema"]
        elif row["use"] == "read" and producer:
            assert node["reads"] & producer["writes"], (node, producer)
            assert row["producer"] < row["node"]
        elif row["use"] == "overwrite":
            assert node["writes"] & producer["reads"], (node, producer)
    # Whatever a call with a schema reads was written by somebody before it, or by nobody in the recording.
    for id_, node in nodes.items():
        callers, above = set(), node["parent"]
        while above in nodes:
            callers.add(above)
            above = nodes[above]["parent"]
        made = {
            s
            for s in node["reads"]
            for other in nodes
            if other < id_ and other not in callers and s in nodes[other]["writes"] and nodes[other]["has_schema"]
        }
        told = {r["producer"] for r in rows if r["node"] == id_ and r["use"] == "read" and r["producer"]}
        if node["has_schema"] and made:
            assert told, node


def test_the_data_of_a_program_goes_where_its_lines_say(files):
    run, et = files
    rows = dependencies(firelane.open(run, execution_trace=et))
    reads = {(r["name"], r["of"]) for r in rows if r["use"] == "read"}
    assert ("aten::relu", "aten::mm") in reads
    assert any(name == "aten::sum" and of in ("aten::relu", "aten::clamp_min") for name, of in reads)
    # The second product reads the weights that sub_ changed, and sub_ waited for the first one.
    assert ("aten::mm", "aten::sub_") in reads
    assert ("aten::sub_", "aten::mm") in {(r["name"], r["of"]) for r in rows if r["use"] == "overwrite"}
    assert ("aten::randn", "aten::mm") not in reads


def evenly_timed(path, to):
    """The same trace with a millisecond from each begin or end of a slice to the next: which chain is the longest does
    not depend on where the machine kept the program waiting."""
    trace = json.loads(path.read_text())
    slices = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    edges = [(round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"]))) for e in slices]
    rank = {ns: 1000 * i for i, ns in enumerate(sorted({ns for edge in edges for ns in edge}))}
    for event, (begin, end) in zip(slices, edges, strict=True):
        event["ts"], event["dur"] = rank[begin], rank[end] - rank[begin]
    trace["traceEvents"] = slices
    to.write_text(json.dumps(trace))
    return to


def test_the_critical_path_says_what_it_follows(files, tmp_path):
    run, et = evenly_timed(files[0], tmp_path / "even.json"), files[1]
    plain, joined = firelane.open(run), firelane.open(run, execution_trace=et)
    assert "data_chain" not in str(plain.critical_path())
    chain = joined.critical_path(table="data_chain", rows=0)
    names = [row["name"] for row in chain]
    assert "aten::mm" in names
    edges = {row["edge"]: row["time_ns"] for row in joined.critical_path(table="edges")}
    assert "host" in edges
    assert sum(edges.values()) == sum(row["time_ns"] for row in joined.critical_path(table="classes"))
    work = joined.sql("select sum(duration_ns) as ns from host_slices where kind = 'op' and depth = 0")[0]["ns"]
    assert 0 < chain[-1]["done_ns"] <= work


def test_alone_it_has_order_and_data_but_no_times(files):
    et = firelane.open(files[1])
    info = et.info
    possible = {row["question"]: row["possible"] for row in info["answers"]}
    assert not possible["time per operator"]
    assert possible["which operator needs whose data"]
    assert possible["shapes of operators' inputs"]
    assert "no verdict" in str(et.diagnose())
    with pytest.raises(ValueError, match="--execution-trace"):
        et.critical_path()
    assert dependencies(et)


def test_files_of_two_runs_are_refused(files, tmp_path):
    with torch.profiler.profile(activities=CPU) as prof:
        torch.ones(2).add(1)
    prof.export_chrome_trace(str(tmp_path / "other.json"))
    with pytest.raises(firelane.TraceError, match="Record function id"):
        firelane.open(tmp_path / "other.json", execution_trace=files[1])


def test_a_recording_of_ours_is_joined_as_its_export_is(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with firelane.profiler.profile(activities=CPU, execution_trace_observer=observer) as prof:
        train()
    prof.save(str(tmp_path / "run.lane"))
    prof.export_chrome_trace(str(tmp_path / "run.json"))
    of_lane, of_export = (
        dependencies(firelane.open(tmp_path / name, execution_trace=tmp_path / "et.json"))
        for name in ("run.lane", "run.json")
    )
    assert sorted(map(str, of_lane)) == sorted(map(str, of_export))
