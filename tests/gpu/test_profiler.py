"""firelane.profiler on a GPU, compared with torch.profiler: rows, tables, Chrome traces, schedules, toggles, nesting.

profile_both.py runs the same scenarios under both; here the results are compared. They come from the folder
FIRELANE_GPU_FRONT if it is set; otherwise they are made here, which needs a GPU.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = {"front": 200, "collectives": 90, "nested": 60}
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALL = re.compile(r"cu(da)?[A-Z]\w*")
# Counts that differ: what the profilers cause themselves, and what depends on the state of the allocator.
UNSTEADY_CALLS = re.compile(r"cuda(DeviceSynchronize|Malloc|Free|HostAlloc|FreeHost|MallocHost)")
# CUPTI's own overhead, which torch shows as CPU rows.
OVERHEAD = {
    "Unknown", "Driver Compiler", "Buffer Flush", "Instrumentation", "Resource", "Runtime Triggered Module Loading",
    "Lazy Function Loading", "Command Buffer Full", "Activity Buffer Request",
}  # fmt: skip
# Ranges that torch only opens for its own profiler (docs/profiler.md).
FOR_TORCH_ONLY = re.compile(
    r"Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|## Call CompiledFxGraph .*|Torch-Compiled Region.*"
)
ACTIVE = {0: ["tanh", "exp"], 1: ["floor", "rsqrt"]}  # what profile_both.scheduled does in the recorded steps


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    if given := os.environ.get("FIRELANE_GPU_FRONT"):
        return Path(given)
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU, and FIRELANE_GPU_FRONT names no answers of one")
    folder = tmp_path_factory.mktemp("front")
    for group, seconds in SECONDS.items():
        with open(folder / f"{group}.log", "w") as log:
            try:
                subprocess.run(
                    [sys.executable, "-X", "faulthandler", str(HERE / "profile_both.py"), str(folder), group],
                    stdout=log, stderr=subprocess.STDOUT, timeout=seconds, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                log.write(f"ended after {seconds} s\n")
    return folder


def answers_of(folder: Path, file: str, scenario: str) -> dict:
    path, log = folder / f"{file}.json", folder / f"{file.split('.', maxsplit=1)[0]}.log"
    found = json.loads(path.read_text()) if path.exists() else {}
    if scenario not in found:
        pytest.fail(
            f"profile_both.py did not reach {scenario}:\n" + (log.read_text()[-3000:] if log.exists() else "no log")
        )
    answers = found[scenario]
    if "failed" in answers and file.endswith("torch"):
        pytest.skip("torch.profiler itself failed: " + answers["failed"])
    assert "failed" not in answers, answers["failed"]
    return answers


def both(folder: Path, scenario: str, group: str = "front") -> tuple[dict, dict]:
    return answers_of(folder, f"{group}.firelane", scenario), answers_of(folder, f"{group}.torch", scenario)


def counts(rows: list[dict], *fields: str) -> dict[tuple, int]:
    found: collections.Counter = collections.Counter()
    for row in rows:
        key = row["key"]
        if not CALL.fullmatch(key) and key not in OVERHEAD and key != "[memory]" and not FOR_TORCH_ONLY.fullmatch(key):
            kind = (key, row["device"], row["is_range"], *(row[field] for field in fields))
            found[kind] += row["count"]
    return dict(found)


def calls(rows: list[dict]) -> dict[str, int]:
    return {r["key"]: r["count"] for r in rows if CALL.fullmatch(r["key"]) and not UNSTEADY_CALLS.match(r["key"])}


def named(work: list[dict], *categories: str) -> collections.Counter:
    return collections.Counter((w["cat"], w["name"], w["stream"]) for w in work if w["cat"] in categories)


def kernels_like(work: list[dict], op: str) -> int:
    return sum(w["cat"] == "kernel" and f"::{op}_kernel" in w["name"] for w in work)


# -- rows and tables ----------------------------------------------------------------------


def test_rows_of_ops_kernels_and_ranges_match_torch(folder):
    ours, theirs = both(folder, "tables")
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert any(row["device"] == "CUDA" and row["key"].startswith("ProfilerStep") for row in ours["rows"])
    assert ours["use_device"] == theirs["use_device"] == "cuda"


def test_rows_by_input_shape_match_torch(folder):
    ours, theirs = both(folder, "tables")
    assert counts(ours["rows_by_shape"], "shapes") == counts(theirs["rows_by_shape"], "shapes")


def test_counts_of_launches_memcpys_and_waits_match_torch(folder):
    ours, theirs = (calls(answers["rows"]) for answers in both(folder, "tables"))
    assert "cudaLaunchKernel" in ours
    assert {name: theirs.get(name) for name in ours} == ours


def test_the_same_ops_have_about_the_same_device_time(folder):
    ours, theirs = (
        {(r["key"], r["device"]): r for r in a["rows"] if not CALL.fullmatch(r["key"])} for a in both(folder, "tables")
    )
    timed = [
        {key for key, row in rows.items() if row["device_us"] > 0 and key[0] not in OVERHEAD} for rows in (ours, theirs)
    ]
    assert timed[0] == timed[1]
    ratios = [
        ours[key]["self_device_us"] / theirs[key]["self_device_us"]
        for key in timed[0]
        if theirs[key]["self_device_us"] > 0
    ]
    assert 0.5 < statistics.median(ratios) < 2  # two runs


def test_memory_and_flops_of_every_op_match_torch(folder):
    ours, theirs = (
        {
            r["key"]: (r["device_bytes"], r["self_device_bytes"], r["flops"])
            for r in a["rows"]
            if r["key"].startswith("aten::")
        }
        for a in both(folder, "tables")
    )
    assert ours == theirs and any(row[0] > 0 for row in ours.values()) and any(row[2] > 0 for row in ours.values())


def test_table_columns_match_torch(folder):
    for scenario, field in (
        ("tables", "columns"),
        ("tables", "columns_by_shape"),
        ("plain_tables", "columns"),
        ("activities", "cuda_only_columns"),
    ):
        ours, theirs = (answers[field] for answers in both(folder, scenario))
        assert ours == theirs, (scenario, field)
    everything = both(folder, "tables")[0]["columns"]
    device = ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
    memory = ["CPU Mem", "Self CPU Mem", "CUDA Mem", "Self CUDA Mem"]
    assert (
        everything[6:14] == device + memory and everything[14] == "# of Calls" and everything[15].startswith("Total ")
    )


def test_tables_sort_by_device_time_and_end_with_torchs_totals(folder):
    ours, theirs = both(folder, "tables")
    by_time = sorted(ours["rows"], key=lambda row: row["device_us"], reverse=True)
    assert [name.removesuffix("...") for name in ours["names_by_time"]] == [row["key"][:52] for row in by_time[:7]]
    assert ours["footer"] == theirs["footer"] == ["Self CPU time total", "Self CUDA time total"]


def test_the_same_ops_have_kernels_the_same_number_of_times(folder):
    ours, theirs = (collections.Counter(answers["events_with_kernels"]) for answers in both(folder, "tables"))
    # Calls and overhead outside ops: torch takes CUPTI's id for an op's, and lists that op's kernels twice.
    wrong = {name for name in theirs if CALL.fullmatch(name) or name in OVERHEAD}
    assert (
        ours == collections.Counter({name: n for name, n in theirs.items() if name not in wrong}) and ours.total() > 0
    )


@pytest.mark.parametrize("name", ["copies", "streams", "graph", "compiled"])
def test_other_programs_have_the_same_rows_and_work(folder, name):
    ours, theirs = (answers[name] for answers in both(folder, "every_program"))
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert named(ours["work"], *WORK) == named(theirs["work"], *WORK)


def test_activities_include_the_gpu(folder):
    ours, theirs = both(folder, "activities")
    assert ours["supported"] == theirs["supported"] and "CUDA" in ours["supported"]
    assert counts(ours["default"]) == counts(theirs["default"])


def test_the_gpu_can_be_recorded_alone(folder):
    ours, theirs = (
        {key: n for key, n in counts(a["cuda_only"]).items() if key[1] == "CUDA"} for a in both(folder, "activities")
    )
    assert ours == theirs != {}


# -- recording ----------------------------------------------------------------------------


def test_a_schedule_only_has_the_work_of_its_recorded_steps(folder):
    ours, theirs = (answers["cycles"] for answers in both(folder, "scheduled"))
    assert len(ours) == len(theirs) == 2 and [c["step"] for c in ours] == [c["step"] for c in theirs]
    for number, (mine, torchs) in enumerate(zip(ours, theirs, strict=True)):
        assert named(mine["work"], *WORK) == named(torchs["work"], *WORK)
        assert [kernels_like(mine["work"], op) for op in ACTIVE[number]] == [1, 1]
        assert sum(w["cat"] == "kernel" for w in mine["work"]) == 2


def test_steps_are_ranges_on_the_device_lanes(folder):
    ours, theirs = (answers["cycles"] for answers in both(folder, "scheduled"))
    for number, (mine, torchs) in enumerate(zip(ours, theirs, strict=True)):
        steps = [f"ProfilerStep#{4 * number + 2}", f"ProfilerStep#{4 * number + 3}"]
        found = named(mine["work"], "gpu_user_annotation")
        assert sorted(name for _, name, _ in found) == steps
        assert found == named(torchs["work"], "gpu_user_annotation")


def test_accumulated_events_come_from_all_cycles(folder):
    ours, theirs = both(folder, "accumulated")
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert [n for (key, *_), n in counts(ours["rows"]).items() if "::sin_kernel" in key] == [2]


def test_the_tensorboard_handler_writes_each_cycle(folder):
    ours, theirs = both(folder, "tensorboard")
    assert ours["kernels"] == theirs["kernels"] == [1, 1]


def test_a_toggle_leaves_a_gap_without_kernels(folder):
    ours = answers_of(folder, "front.firelane", "toggled")
    assert [kernels_like(ours["work"], op) for op in ("sin", "cos", "tanh")] == [1, 0, 1]
    assert {"aten::sin", "aten::cos", "aten::tanh"} <= set(ours["ops"])


def test_a_toggle_does_not_wait_for_the_gpu(folder):
    ours = answers_of(folder, "front.firelane", "toggled")
    assert ours["busy"]
    assert [kernels_like(ours["work_while_busy"], op) for op in ("cos", "tanh")] == [0, 1], ours


def test_stacks_and_modules_come_with_device_time_and_change_nothing_else(folder):
    ours, theirs = both(folder, "stacks")
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert named(ours["work"], *WORK) == named(theirs["work"], *WORK)
    assert ours["lines"] > 0 and any("programs.py" in line for line in ours["some"])
    assert ours["grouped"] and ours["modules"]


def test_memory_timelines_end_with_the_same_parameters_gradients_and_optimizer_states(folder):
    ours, theirs = both(folder, "memory_timeline")
    parameter, optimizer_state, gradient = 1, 2, 6
    for category in (parameter, gradient, optimizer_state):
        assert ours["at_end"][category] == theirs["at_end"][category] > 0, category


def test_a_profiler_in_a_thread_sees_the_same(folder):
    ours, theirs = both(folder, "in_a_thread")
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert named(ours["work"], *WORK) == named(theirs["work"], *WORK)


def test_waits_include_those_of_torch(folder):
    ours, theirs = (
        {w["name"] for w in answers["work"] if w["cat"] == "cuda_sync"} for answers in both(folder, "waits")
    )
    assert theirs and theirs <= ours


# -- Chrome traces ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def chrome(folder) -> list[dict]:
    both(folder, "tables")
    traces = []
    for kind in ("firelane", "torch"):
        with gzip.open(folder / f"tables.{kind}.json.gz", "rt") as file:
            traces.append(json.load(file))
    return traces


def of(trace: dict, category: str) -> list[dict]:
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


@pytest.mark.parametrize(
    "category, missing",
    [
        ("cpu_op", {"Ev Idx", "Record function id"}),  # torch's own numbers
        ("kernel", set()),
        ("gpu_memcpy", set()),
        ("gpu_memset", set()),
        ("cuda_runtime", {"cbid"}),  # calls are recorded by name
        ("cuda_driver", {"cbid"}),
        ("gpu_user_annotation", set()),
    ],
)
def test_chrome_trace_args_match_torch(chrome, category, missing):
    keys = [set().union(*(event.get("args", {}) for event in of(trace, category))) for trace in chrome]
    assert keys[1] - keys[0] <= missing and bool(of(chrome[0], category)) == bool(of(chrome[1], category))


def test_chrome_trace_work_and_lanes_match_torch(chrome):
    for category in (*WORK, "gpu_user_annotation"):
        ours, theirs = (
            collections.Counter((e["name"], e["pid"], e["tid"]) for e in of(trace, category)) for trace in chrome
        )
        assert ours == theirs, category


def test_lane_names_match_torch(chrome):
    def lanes(trace):
        used = {(e["pid"], e["tid"]) for category in WORK for e in of(trace, category)}
        return {
            (e["name"], e["pid"], e["tid"], str(e["args"]).replace(" '}", "'}"))  # Kineto writes "stream 7 "
            for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"].startswith("thread") and (e["pid"], e["tid"]) in used
        }

    assert lanes(chrome[0]) == lanes(chrome[1]) != set()
    for what in ("process_name", "process_labels", "process_sort_index"):
        ours, theirs = ({(e["pid"], str(e["args"])) for e in t["traceEvents"] if e["name"] == what} for t in chrome)
        processes = {pid for pid, _ in ours} - {"Spans"}  # that one holds the window, and is no process
        assert len(processes) == 2 and ours <= theirs, what


def test_version_fields_match_torch(chrome):
    for key in (
        "schemaVersion",
        "cuda_driver_version",
        "cuda_runtime_version",
        "cupti_version",
        "displayTimeUnit",
        "record_shapes",
    ):
        assert chrome[0][key] == chrome[1][key], key


def test_kernel_numbers_match_torch(chrome):
    keys = (
        "est. achieved occupancy %",
        "blocks per SM",
        "warps per SM",
        "registers per thread",
        "shared memory",
        "grid",
        "block",
        "queued",
    )
    ours, theirs = (
        collections.Counter((e["name"], *(str(e["args"][k]) for k in keys[3:])) for e in of(t, "kernel"))
        for t in chrome
    )
    assert ours == theirs
    ours, theirs = (
        {(e["name"], str(e["args"]["grid"])): [e["args"][k] for k in keys[:3]] for e in of(t, "kernel")} for t in chrome
    )
    for kernel, (occupancy, *numbers) in ours.items():
        assert numbers == pytest.approx(theirs[kernel][1:], abs=1e-6), kernel
        assert occupancy == theirs[kernel][0] or theirs[kernel][0] == 0, (
            kernel
        )  # 0: more shared memory than Kineto knows of


def test_an_arrow_leads_from_a_call_to_each_kernel(chrome):
    for trace in chrome:
        begins = {e["id"]: (e["pid"], e["tid"], e["ts"]) for e in of(trace, "ac2g") if e["ph"] == "s"}
        ends = collections.Counter((e["id"], e["pid"], e["tid"]) for e in of(trace, "ac2g") if e["ph"] == "f")
        for category in WORK:
            for event in of(trace, category):
                number = event["args"]["correlation"]
                assert begins[number][0] != event["pid"] and ends[number, event["pid"], event["tid"]] > 0, event
                assert begins[number][2] <= event["ts"], event


def test_external_ids_link_kernels_to_the_same_ops(chrome):
    def pairs(trace):
        ops = {e["args"]["External id"]: e["name"] for e in of(trace, "cpu_op")}
        return collections.Counter(
            (e["name"], ops.get(e["args"].get("External id"))) for category in WORK for e in of(trace, category)
        )

    ours, theirs = map(pairs, chrome)
    linked = collections.Counter({pair: n for pair, n in theirs.items() if pair[1]})
    assert sum((linked - ours).values()) <= 0.001 * sum(linked.values())


# -- collectives --------------------------------------------------------------------------

COLLECTIVE = (
    "Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Process Group Name",
    "Process Group Description", "Process Group Ranks", "In split size", "Out split size",
)  # fmt: skip
ON_THE_OP = ("Rank", "Global rank start", "Global rank stride")


def test_rows_and_work_of_collectives_match_torch(folder):
    ours, theirs = both(folder, "collectives", "collectives")
    assert counts(ours["rows"]) == counts(theirs["rows"])
    assert named(ours["work"], *WORK) == named(theirs["work"], *WORK)


@pytest.mark.parametrize("category", ["cpu_op", *WORK])
def test_args_of_collectives_match_torch(folder, category):
    both(folder, "collectives", "collectives")
    keys = COLLECTIVE + (ON_THE_OP if category == "cpu_op" else ())
    said = []
    for kind in ("firelane", "torch"):
        with gzip.open(folder / f"collectives.{kind}.json.gz", "rt") as file:
            trace = json.load(file)
        said.append(
            collections.Counter(
                (e["name"], *(json.dumps(e["args"].get(key)) for key in keys))
                for e in of(trace, category)
                if "Collective name" in e.get("args", {})
            )
        )
    ours, theirs = said
    assert theirs - ours == collections.Counter()
    assert ours or category != "cpu_op"


# -- nested profilers ---------------------------------------------------------------------


def test_inside_a_running_torch_profiler_only_the_cpu_is_recorded_with_a_reason(folder):
    found = answers_of(folder, "nested", "ours_inside_torchs")
    assert any("torch.profiler is recording; stop it first" in reason for reason in found["losses"])
    assert any("torch.profiler is recording" in said for said in found["said"])
    assert any(row["key"] == "aten::cos" for row in found["rows"])
    assert not any(row["device"] == "CUDA" for row in found["rows"])
    assert [kernels_like(found["outer_work"], op) for op in ("sin", "cos", "tanh")] == [1, 1, 1]


def test_after_torch_profiler_the_gpu_is_recorded_again(folder):
    found = answers_of(folder, "nested", "ours_afterwards")
    assert kernels_like(found["work"], "sin") == 1 and found["losses"] == []


def test_a_torch_profiler_inside_ours_does_not_stop_it(folder):
    found = answers_of(folder, "nested", "torchs_inside_ours")
    assert {"aten::sin", "aten::cos", "aten::tanh"} <= {row["key"] for row in found["rows"]}
