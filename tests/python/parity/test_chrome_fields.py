"""Chrome traces: names, args and marks that tools look for in Kineto's."""

import collections
import gc
import json

import pytest
import torch
from torch.profiler import ExecutionTraceObserver, record_function

import firelane.profiler

CPU = [torch.profiler.ProfilerActivity.CPU]


def chrome(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())


def events_of(prof, path, category):
    return [e for e in chrome(prof, path)["traceEvents"] if e.get("cat") == category]


def two_linears():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    x = torch.randn(2, 4)
    return lambda: model(x)


def test_modules_are_slices_and_frames_know_their_callers(both, tmp_path):
    def modules(prof):
        frames = events_of(prof, tmp_path / "trace.json", "python_function")
        by_id = {e["args"]["Python id"]: e for e in frames}
        assert len(by_id) == len(frames)

        def module_around(event):
            parent = by_id.get(event["args"]["Python parent id"])
            while parent is not None and not parent["name"].startswith("nn.Module: "):
                parent = by_id.get(parent["args"].get("Python parent id"))  # torch 2.15's outermost have none
            return parent["name"] if parent is not None else None

        return sorted(
            (e["name"], e["args"]["Python module id"], str(module_around(e)))
            for e in frames
            if e["name"].startswith("nn.Module: ")
        )

    theirs, ours = both(two_linears(), with_stack=True)
    assert modules(ours) == modules(theirs)
    assert ("nn.Module: Linear_1", 1, "nn.Module: Sequential_0") in modules(ours)


class Called:
    """Its calls are of every kind: by name, by an operator, as a property, by C code, generators, a class."""

    def __add__(self, other):
        return self

    @property
    def doubled(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def later():
    yield 1
    yield 2


def line_by_line():
    here = Called()
    here + 1
    _ = here.doubled
    pause = later()
    for _ in pause:
        sorted([2, 1], key=lambda x: -x)
    with here:
        torch.ones(2)
    Called.__add__(here, 1)


def test_frames_say_which_line_called_them(both, tmp_path):
    def calls(prof):
        frames = events_of(prof, tmp_path / "trace.json", "python_function")
        by_id = {e["args"]["Python id"]: e["name"] for e in frames}
        return [
            (e["name"].partition(" object at ")[0], e["args"]["CallFrom"].rpartition("/")[2])
            for e in sorted(frames, key=lambda e: e["args"]["Python id"])
            if ": line_by_line" in by_id.get(e["args"].get("Python parent id"), "")
        ]

    theirs, ours = both(line_by_line, with_stack=True)
    begin = line_by_line.__code__.co_firstlineno
    lines = [int(where.removeprefix("test_chrome_fields.py:")) - begin for _, where in calls(ours)]
    assert lines[:3] == [2, 3, 5]
    assert lines.count(6) == 2 and lines.count(7) >= 1 and 8 in lines
    if torch.__version__ >= (2, 15):  # which has the arg, too
        assert [where for _, where in calls(ours)] == [where for _, where in calls(theirs)]


def test_args_of_ops_and_ranges(both, tmp_path):
    def run():
        with record_function("range"):
            torch.ones(2).add(1)

    def keys(prof):
        trace = chrome(prof, tmp_path / "trace.json")["traceEvents"]
        return {e["name"]: set(e["args"]) for e in trace if e.get("cat") in ("cpu_op", "user_annotation")}

    theirs, ours = both(run, record_shapes=True)
    extra = {"Overload name"}  # which torch leaves out
    assert {name: args - extra for name, args in keys(ours).items()} == keys(theirs)


@pytest.mark.parametrize("category", ["cpu_op"])  # frames that run already have other lines in torch
def test_events_have_their_call_stack_for_who_asks(both, tmp_path, category):
    """`verbose`: the arg that torch_tb_profiler shows beside an operator. It was missing from Chrome traces."""
    forward = two_linears()

    def run():
        forward()

    def stacks(prof):
        """From run() on, and without C functions, which have other names in ours."""
        by_name = [
            (e["name"], e["args"].get("Call stack", "").split(";")[:-1])
            for e in events_of(prof, tmp_path / "trace.json", category)
        ]
        frames = [(name, [f for f in stack if not f.startswith("<built-in")]) for name, stack in by_name]
        inside = [
            (name, [f.endswith(": run") for f in stack].index(True), stack)
            for name, stack in frames
            if any(f.endswith(": run") for f in stack)
        ]
        return sorted((name, stack[: depth + 1]) for name, depth, stack in inside if not name.startswith("<built-in"))

    for verbose in (True, False):
        theirs, ours = both(run, with_stack=True, config={"verbose": verbose})
        assert stacks(ours) == stacks(theirs)
        assert bool(stacks(ours)) == verbose


def test_each_event_has_an_index_of_its_own(both, tmp_path):
    _, ours = both(two_linears(), with_stack=True, profile_memory=True)
    indices = [
        e["args"]["Ev Idx"]
        for e in chrome(ours, tmp_path / "trace.json")["traceEvents"]
        if e.get("cat") in ("cpu_op", "python_function", "cpu_instant_event")
    ]
    assert len(indices) == len(set(indices)) > 10


def test_the_window_is_marked_at_the_end_of_the_file(both, tmp_path):
    def marks(prof):
        last = chrome(prof, tmp_path / "trace.json")["traceEvents"][-4:]
        return [(e["name"], e["ph"], e.get("cat"), e["pid"], e["tid"], e.get("s")) for e in last]

    theirs, ours = both(two_linears())
    assert marks(ours) == marks(theirs)


# torch has the option from 2.9 on; before, ours has collections in all traces with stacks.
CAN_ASK_FOR_COLLECTIONS = "record_python_gc_info:" in (torch._C._profiler._ExperimentalConfig.__init__.__doc__ or "")


def counts_of_collections(prof, path):
    """In the Chrome trace and in the event tree."""
    names = collections.Counter(e["name"] for e in chrome(prof, path)["traceEvents"])
    nodes = collections.Counter(node.name for node in walk(prof.profiler.kineto_results.experimental_event_tree()))
    return names["Python GC"], nodes["Python GC"]


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node.children)


def test_collections_are_called_python_gc(both, tmp_path):
    config = {"record_python_gc_info": True} if CAN_ASK_FOR_COLLECTIONS else None
    theirs, ours = both(gc.collect, config=config, with_stack=True)
    assert counts_of_collections(ours, tmp_path / "ours.json") == (1, 1)
    if CAN_ASK_FOR_COLLECTIONS:
        assert counts_of_collections(theirs, tmp_path / "theirs.json") == (1, 1)


@pytest.mark.skipif(not CAN_ASK_FOR_COLLECTIONS, reason="torch before 2.9 has no option for them")
@pytest.mark.parametrize("asked, stacks", [(False, True), (True, False), (False, False)])
def test_collections_were_written_although_nobody_asked_for_them(both, tmp_path, asked, stacks):
    profs = both(gc.collect, config={"record_python_gc_info": asked}, with_stack=stacks)
    assert [counts_of_collections(prof, tmp_path / "trace.json") for prof in profs] == [(0, 0), (0, 0)]
    assert profs[1].trace.sql("select 1 from host_slices where name = 'gc: generation 2'")  # they are in the recording
    profs[1].trace.export(str(tmp_path / "own.json"), to="chrome")  # our own exports have all of it
    assert "Python GC" in (tmp_path / "own.json").read_text()


def test_stopping_left_a_thousand_python_functions_of_ours_in_the_trace(both, tmp_path):
    _, ours = both(two_linears(), with_stack=True)
    names = [e["name"] for e in events_of(ours, tmp_path / "trace.json", "python_function")]
    assert any(name.endswith(": forward") for name in names)
    assert not [name for name in names if "_surroundings" in name or "io.open" in name]


def test_steps_do_not_cut_the_functions_that_call_step(tmp_path):
    config = torch._C._profiler._ExperimentalConfig(adjust_profiler_step=True)
    steps = torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1)

    def step_of(prof):
        torch.ones(8).sum()
        prof.step()

    torchs = [] if torch.__version__ >= (2, 15) else [torch.profiler.profile]  # which ignores it from 2.15 on
    for profile in (*torchs, firelane.profiler.profile):
        with profile(activities=CPU, with_stack=True, schedule=steps, experimental_config=config) as prof:
            for _ in range(4):
                step_of(prof)
        trace = chrome(prof, tmp_path / "trace.json")["traceEvents"]
        spans = {
            prefix: [(e["ts"], e["ts"] + e["dur"]) for e in trace if e.get("ph") == "X" and prefix in e["name"]]
            for prefix in ("ProfilerStep#", ": step_of")
        }
        assert len(spans["ProfilerStep#"]) == 3
        for begin, end in spans["ProfilerStep#"]:
            assert not any(start < begin < stop < end for start, stop in spans[": step_of"])
            assert not any(begin < start < end < stop for start, stop in spans[": step_of"])


def test_execution_traces_are_joined_by_record_function_ids(tmp_path):
    for profile in (torch.profiler.profile, firelane.profiler.profile):
        observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
        with profile(activities=CPU, execution_trace_observer=observer) as prof:
            torch.ones(2).add(1)
        nodes = json.loads((tmp_path / "et.json").read_text())["nodes"]
        ids = {
            attribute["value"]: node["name"]
            for node in nodes
            for attribute in node["attrs"]
            if attribute["name"] == "rf_id"
        }
        ops = events_of(prof, tmp_path / "trace.json", "cpu_op")
        add = next(e for e in ops if e["name"] == "aten::add")
        assert ids[add["args"]["Record function id"]] == "aten::add"


def test_without_an_observer_record_function_ids_are_zero(both, tmp_path):
    for prof in both(two_linears()):
        ops = events_of(prof, tmp_path / "trace.json", "cpu_op")
        assert {e["args"]["Record function id"] for e in ops} == {0}


@pytest.mark.parametrize("profile_memory", [False, True])
def test_an_export_says_nothing_that_reading_it_again_does_not_understand(both, tmp_path, profile_memory):
    _, ours = both(two_linears(), with_stack=True, profile_memory=profile_memory)
    path = tmp_path / "trace.json"
    ours.export_chrome_trace(str(path))
    again = firelane.open(str(path))
    assert [r["name"] for r in again.sql("select name from host_slices where kind='op' order by start_ns, id")] == [
        r["name"] for r in ours.trace.sql("select name from host_slices where kind='op' order by start_ns, id")
    ]


def quoted():
    """A function whose name and file have quotation marks, as those of torch.compile, and a range with some."""
    space = {}
    exec(compile("def called():\n    pass\n", '{"device": "cpu"}.py', "exec"), space)
    space["called"].__code__ = space["called"].__code__.replace(co_name='ca"lled')

    def run():
        with record_function('a "range"'):
            space["called"]()

    return run


def test_names_have_apostrophes_where_the_program_had_quotation_marks(both, tmp_path):
    theirs, ours = both(quoted(), with_stack=True)

    def names(prof):
        events = chrome(prof, tmp_path / "trace.json")["traceEvents"]
        return {e["name"] for e in events if "device" in e["name"] or e.get("cat") == "user_annotation"}

    expected = {"{'device': 'cpu'}.py(1): ca'lled", "a 'range'"}
    assert names(ours) == expected
    if torch.torch_version.TorchVersion(torch.__version__) >= "2.15":  # in 2.13, such a name breaks torch's file
        assert names(theirs) == expected


def test_keywords_with_quotation_marks_are_none(both, tmp_path):
    expected = {"stream": 0, "kept": "it's", "debug": "None", "several": "None", "is_on": True, "a, not: b": "x"}
    keywords = {**expected, "debug": 'debug"', "several": 'a"b"c'}

    def run():
        with torch._C._profiler._RecordFunctionFast("fast", [torch.ones(2)], keywords):
            pass

    profs = both(run, record_shapes=True)

    def args(prof):
        (fast,) = [e for e in chrome(prof, tmp_path / "trace.json")["traceEvents"] if e.get("name") == "fast"]
        return {key: fast["args"].get(key) for key in keywords}

    assert [args(prof) for prof in profs] == [expected, expected]
    (fast,) = [e for e in profs[1].events() if e.name == "fast"]
    assert fast.kwinputs["debug"] == 'debug"'  # events have what was given
