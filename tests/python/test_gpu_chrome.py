"""Chrome exports of H200 recordings compared with Kineto's of the same programs: lanes, args, types, collectives.

tests/gpu/pairs and tests/data/*collectives* hold them (tests/data/README.md). Needs no GPU and no torch.
"""

import collections
import gzip
import json
from pathlib import Path

import pytest

import firelane

TESTS = Path(__file__).parent.parent
PAIRS = {
    name: (f"gpu/pairs/{name}.lane", f"gpu/pairs/{name}.json.gz")
    for name in ("train", "streams", "copies", "graph", "threads")
}
PAIRS["collectives"] = ("data/h200_collectives.lane", "data/collectives.json.gz")
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
# Torch's own event ids; CUPTI's ids of calls, which are recorded by name; and what the event itself says.
LEFT_OUT = {"Ev Idx", "Record function id", "cbid", "finished"}
# Only recorded by one side: torch.profiler had shapes off, or was told to keep waits.
ASKED_OF_ONE = {"Input Dims", "Input type", "Input Strides", "Concrete Inputs"}


@pytest.fixture(scope="module", params=sorted(PAIRS))
def pair(request, tmp_path_factory):
    ours, theirs = PAIRS[request.param]
    path = tmp_path_factory.mktemp("chrome") / "ours.json"
    firelane.open(TESTS / ours).export(path, to="chrome")
    with gzip.open(TESTS / theirs, "rt") as file:
        return json.loads(path.read_text()), json.load(file)


@pytest.fixture(scope="module")
def collectives(tmp_path_factory):
    path = tmp_path_factory.mktemp("chrome") / "ours.json"
    firelane.open(TESTS / PAIRS["collectives"][0]).export(path, to="chrome")
    with gzip.open(TESTS / PAIRS["collectives"][1], "rt") as file:
        return json.loads(path.read_text()), json.load(file)


def of(trace, *categories):
    return [event for event in trace["traceEvents"] if event.get("cat") in categories]


def kind_of(value):
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def args_of(trace, category):
    return {(key, kind_of(value)) for event in of(trace, category) for key, value in event.get("args", {}).items()}


@pytest.mark.parametrize("category", ["cpu_op", "cuda_runtime", "cuda_driver", *GPU, "cuda_sync"])
def test_event_args_match_kineto_in_name_and_type(pair, category):
    ours, theirs = (args_of(trace, category) for trace in pair)
    missing = {key for key, _ in theirs - ours if key not in LEFT_OUT | ASKED_OF_ONE}
    if of(pair[0], category):
        assert missing == set()


def test_kernel_numbers_match_kineto(pair):
    exact = ("registers per thread", "shared memory", "grid", "block", "context", "device", "stream", "queued")
    about = ("est. achieved occupancy %", "blocks per SM", "warps per SM")
    ours, theirs = (
        {
            (e["name"], *(str(e["args"][key]) for key in exact)): [e["args"][key] for key in about]
            for e in of(trace, "kernel")
        }
        for trace in pair
    )
    assert ours.keys() == theirs.keys() and ours
    for kernel, (occupancy, *rest) in ours.items():
        percent, *others = theirs[kernel]
        assert rest == pytest.approx(others, abs=1e-6), kernel  # six decimals
        assert isinstance(occupancy, int)
        if (
            percent > 0 or int(kernel[2]) <= 48 << 10
        ):  # otherwise Kineto says 0: it does not know that a kernel may request more shared memory
            assert occupancy == percent, kernel


def test_memcpys_and_memsets_have_their_context(pair):
    ours, theirs = (
        collections.Counter(
            (e["name"], e["args"]["context"], e["args"]["bytes"]) for e in of(trace, "gpu_memcpy", "gpu_memset")
        )
        for trace in pair
    )
    assert ours == theirs


def test_gpus_are_processes_named_labeled_and_sorted_as_in_kineto(pair):
    def processes(trace, what):
        used = {event["pid"] for event in of(trace, *GPU)}
        return {
            (e["pid"], str(e["args"]))
            for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"] == what and e["pid"] in used
        }

    for what in ("process_name", "process_labels", "process_sort_index"):
        ours, theirs = (processes(trace, what) for trace in pair)
        assert ours == theirs and len(ours) == 1, what


def test_group_and_sizes_of_a_collective_match_torch(collectives):
    keys = (
        "Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size", "Out split size", "Group size",
        "Rank", "Process Group Name", "Process Group Description", "Process Group Ranks", "Global rank start",
        "Global rank stride",
    )  # fmt: skip
    ours, theirs = (
        collections.Counter(
            tuple(json.dumps(e["args"][key]) for key in keys)
            for e in of(trace, "cpu_op")
            if "Collective name" in e["args"]
        )
        for trace in collectives
    )
    assert ours == theirs and ours.total() == 7


def test_lists_in_a_collective_are_strings(collectives):
    ops = [e["args"] for e in of(collectives[0], "cpu_op") if "Collective name" in e["args"]]
    assert {(op["Process Group Ranks"], op["In split size"], op["Out split size"]) for op in ops} == {
        ("[0]", "[]", "[]")
    }


def test_columns_of_collectives_can_be_queried():
    trace = firelane.open(TESTS / PAIRS["collectives"][0])
    rows = trace.sql(
        "select distinct group_ranks, in_split_sizes, global_rank_start, global_rank_stride from comm_details"
    )
    assert [tuple(row.values()) for row in rows] == [("[0]", "[]", 0, 1)]


def test_the_same_ranges_are_on_the_gpu(collectives):
    ours, theirs = (
        collections.Counter((e["name"], e["tid"]) for e in of(trace, "gpu_user_annotation")) for trace in collectives
    )
    assert ours == theirs and ours.total() == 3
