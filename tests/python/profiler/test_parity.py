"""The same programs under torch.profiler and firelane.profiler, in one process, give the same results.

Events (names, counts, nesting, shapes, concrete inputs), forward-backward links and memory are compared; times are not,
because they come from two runs. docs/profiler.md lists the differences and the reasons.
"""

import collections
import gc
import gzip
import json
import re
import shutil
import weakref

import pytest
import torch

import firelane.profiler
import programs

CPU = [torch.profiler.ProfilerActivity.CPU]
FLAGS = {"record_shapes": True, "profile_memory": True, "with_flops": True}
ALIKE = [
    programs.convolution_net,
    programs.transformer,
    programs.double_backward,
    programs.custom_function,
    programs.torchscript,
    programs.tensor_lists,
    programs.data_loader,
    programs.data_loader_with_workers,
    pytest.param(
        programs.compiled, marks=pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a compiler")
    ),
]


def record(module, run, **flags):
    gc.collect()  # else what other tests have left is freed in some operator of this recording
    gc.disable()
    try:
        with module.profile(activities=CPU, **{**FLAGS, **flags}) as prof:
            run()
    finally:
        gc.enable()
    return prof


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """torch.profiler does not see the ops of other threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=ALIKE, ids=lambda p: p.__name__)
def pair(request):
    """(torch's profiler, firelane's) after the same run."""
    run = request.param()
    for _ in range(3):  # fills caches and lazy state, compiles
        run()
    return record(torch.profiler, run), record(firelane.profiler, run)


def counted(prof, describe):
    return collections.Counter(describe(event) for event in prof.events() if event.name != "[memory]")


def path_of(event):
    names = []
    while event is not None:
        names.append(event.name)
        event = event.cpu_parent
    return tuple(names)


def test_names_and_counts(pair):
    theirs, ours = pair
    assert counted(ours, lambda e: (e.name, e.is_user_annotation)) == counted(
        theirs, lambda e: (e.name, e.is_user_annotation)
    )


def test_nesting(pair):
    theirs, ours = pair
    assert counted(ours, path_of) == counted(theirs, path_of)


def test_shapes_and_concrete_inputs(pair):
    theirs, ours = pair
    numbers = re.compile(r"\d\.\d{5,}(e-\d+)?")  # AdamW's bias correction changes with each step

    def describe(event):
        return event.name, str(event.input_shapes), numbers.sub("x", str(event.concrete_inputs))

    assert counted(ours, describe) == counted(theirs, describe)


def test_scopes_and_flops(pair):
    theirs, ours = pair
    kept = (1, 7)  # backward functions and user ranges; our traces do not distinguish the others

    def describe(event):
        return event.name, event.scope if event.scope in kept else 0, event.flops

    assert counted(ours, describe) == counted(theirs, describe)


def links(prof):
    """The forward op that each backward function refers to by its sequence number."""
    forward = collections.defaultdict(list)
    for event in prof.events():
        if event.sequence_nr >= 0 and not event.fwd_thread:
            forward[event.sequence_nr].append(event.name)
    return collections.Counter(
        (event.name, forward[event.sequence_nr][-1] if forward[event.sequence_nr] else None)
        for event in prof.events()
        if event.sequence_nr >= 0 and event.fwd_thread
    )


def test_forward_backward_links(pair):
    theirs, ours = pair
    assert links(ours) == links(theirs)


def frees_of_unknown_blocks(prof):
    """By the names around them, the bytes of frees of blocks that were not allocated while `prof` recorded.

    Both profilers know the blocks that they saw allocated earlier. torch keeps their sizes also when they are freed
    while none runs: what lies at that address later is then taken for the old block.
    """
    found, allocations, nodes = collections.Counter(), [], prof.profiler.kineto_results.experimental_event_tree()
    for node in nodes:  # grows meanwhile
        nodes.extend(node.children)
        if node.tag == torch._C._profiler._EventType.Allocation:
            allocations.append(node)
    known = set()
    for node in sorted(allocations, key=lambda node: node.start_time_ns):
        fields = node.extra_fields
        if fields.alloc_size > 0:
            known.add(fields.ptr)
        elif fields.ptr not in known:
            around, names = node.parent, set()
            while around is not None:
                names.add(around.name)
                around = around.parent
            found.update(dict.fromkeys(names, fields.alloc_size))
    return found


def test_memory_of_each_operator(pair):
    theirs, ours = pair
    if any("_MultiProcessingDataLoaderIter" in row.key for row in ours.key_averages()):
        pytest.skip("memory shared with workers is mapped, not allocated: torch counts it, firelane does not")
    if not programs.HAS_EXACT_MEMORY:
        pytest.skip("torch before 2.11 gives some memory to the wrong op")

    def memory(prof, left_out):
        rows = [row for row in prof.key_averages() if row.key != "[memory]"]
        return {row.key: row.cpu_memory_usage - left_out[row.key] for row in rows}

    assert memory(ours, frees_of_unknown_blocks(ours)) == memory(theirs, frees_of_unknown_blocks(theirs))


def test_rows_and_their_order(pair):
    theirs, ours = pair

    def rows(prof):
        return [(row.key, row.count) for row in prof.key_averages(group_by_input_shape=True) if row.key != "[memory]"]

    assert rows(ours) == rows(theirs)


def config_with(option):
    if f"{option}:" not in (torch.profiler._ExperimentalConfig.__init__.__doc__ or ""):
        pytest.skip(f"torch {torch.__version__} has no {option}")
    return torch.profiler._ExperimentalConfig(**{option: True})


def test_all_threads_are_recorded_by_default():
    run = programs.threads()
    run()
    everything = config_with("profile_all_threads")
    theirs = record(torch.profiler, run, experimental_config=everything)
    ours = record(firelane.profiler, run)
    assert counted(ours, path_of) == counted(theirs, path_of)
    assert len({event.thread for event in ours.events() if event.name == "aten::mm"}) == 2
    # torch loses all memory events then (pytorch#192290)
    assert next(row for row in ours.key_averages() if row.key == "aten::mm").self_cpu_memory_usage > 0


MEMORY_CATEGORIES = ["parameter", "optimizer state", "input", "temporary", "activation", "gradient"]


def memory_by_category(module, folder):
    """(bytes at the end, peak bytes) of each category, for a model that is trained for two steps."""
    torch.manual_seed(0)
    with module.profile(activities=CPU, record_shapes=True, profile_memory=True, with_stack=True) as prof:
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(2):
            loss = model(torch.ones(16, 64)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    file = str(folder / f"{module.__name__}.json")
    prof.export_memory_timeline(file, "cpu")
    with open(file) as opened:
        _, sizes = json.load(opened)
    del model, optimizer, loss
    columns = list(zip(*sizes, strict=True))[1:]
    return {name: (column[-1], max(column)) for name, column in zip(MEMORY_CATEGORIES, columns, strict=False)}


def torch_keeps_models():
    """Whether torch's profiler holds on to a module that it saw, as 2.9's does with Python 3.13."""
    with torch.profiler.profile(activities=CPU, with_stack=True):
        model = torch.nn.Linear(4, 4)
        model(torch.ones(1, 4))
    seen = weakref.ref(model)
    del model
    return seen() is not None


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_memory_timelines_have_the_same_categories(tmp_path, no_collections):
    if torch_keeps_models():
        pytest.skip("torch's profiler keeps models of earlier tests alive: ours counts them as memory from before")
    theirs, ours = (memory_by_category(module, tmp_path) for module in (torch.profiler, firelane.profiler))
    at_end = [{name: bytes_of[0] for name, bytes_of in each.items()} for each in (ours, theirs)]
    assert at_end[0] == at_end[1] and at_end[0]["parameter"] == 4 * (64 * 128 + 128 + 128 * 32 + 32)
    for name in ("optimizer state", "gradient"):
        assert ours[name] == theirs[name], name
    assert ours["activation"][1] > 0 and ours["temporary"][1] > 0


def test_overloads_match_torch(tmp_path):
    run = programs.transformer()
    for _ in range(3):
        run()
    config = config_with("capture_overload_names")
    profs = [record(module, run, experimental_config=config) for module in (torch.profiler, firelane.profiler)]

    def rows(prof):
        found = prof.key_averages(group_by_overload_name=True)
        return [(r.key, r.overload_name, r.count) for r in found if r.key != "[memory]"]

    def chrome_names(prof):
        prof.export_chrome_trace(str(tmp_path / "t.json"))
        trace = json.loads((tmp_path / "t.json").read_text())
        return collections.Counter(e["name"] for e in slices(trace, "cpu_op") if e["name"].startswith("aten::"))

    theirs, ours = profs
    assert rows(ours) == rows(theirs) and ("aten::add", "Tensor") in {row[:2] for row in rows(ours)}
    assert counted(ours, lambda e: (e.name, e.overload_name)) == counted(theirs, lambda e: (e.name, e.overload_name))
    assert chrome_names(ours) == chrome_names(theirs)
    headers = [p.key_averages(group_by_overload_name=True).table().splitlines()[1].split("  ") for p in profs]
    assert [name for name in headers[0] if name] == [name for name in headers[1] if name]
    ours.export_chrome_trace(str(tmp_path / "t.json"))
    names = {row["name"] for row in firelane.open(tmp_path / "t.json").host_slices}
    assert "aten::add" in names and "aten::add.Tensor" not in names  # firelane's own file, read again


def test_tables_can_group_by_overload_without_a_config():
    prof = record(firelane.profiler, lambda: torch.ones(2).add(1).add_(torch.ones(2)))
    rows = {(r.key, r.overload_name) for r in prof.key_averages(group_by_overload_name=True)}
    assert {("aten::add", "Tensor"), ("aten::fill_", "Scalar")} <= rows
    assert {r.overload_name for r in prof.key_averages()} == {""} == {e.overload_name for e in prof.events()}


# -- Chrome traces ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chrome")
    run = programs.transformer()
    run()
    traces = []
    for module, name in ((torch.profiler, "torch.json"), (firelane.profiler, "ours.json.gz")):
        prof = record(module, run)
        prof.export_chrome_trace(str(folder / name))
        opened = gzip.open if name.endswith(".gz") else open
        with opened(folder / name, "rt") as file:
            traces.append(json.load(file))
    return traces


def slices(trace, *categories):
    return [e for e in trace["traceEvents"] if e.get("cat") in categories]


def test_chrome_traces_have_the_same_slices(chrome):
    theirs, ours = chrome
    for category in ("cpu_op", "user_annotation"):
        names = [collections.Counter(e["name"] for e in slices(trace, category)) for trace in (theirs, ours)]
        for hidden in ("profiler::_record_function_enter_new", "profiler::_record_function_exit"):
            names[1].pop(hidden, None)
            names[0].pop(hidden, None)
        assert names[0] == names[1]


def test_chrome_traces_have_the_same_args(chrome):
    theirs, ours = chrome
    for category in ("cpu_op", "user_annotation", "cpu_instant_event"):
        keys = [set().union(*(e["args"] for e in slices(trace, category))) for trace in (theirs, ours)]
        assert keys[0] - keys[1] <= {"finished"}, category


def test_chrome_traces_have_the_same_arrows(chrome):
    arrows = [collections.Counter(e["ph"] for e in slices(trace, "fwdbwd")) for trace in chrome]
    assert arrows[0] == arrows[1] and arrows[0]["s"] > 0


def test_chrome_trace_has_one_backward_name_per_sequence_number(chrome):
    _, ours = chrome
    names = collections.defaultdict(set)
    for event in slices(ours, "cpu_op"):
        if event["args"].get("Fwd thread id") and not event["name"].startswith("autograd::engine"):
            names[event["args"]["Sequence number"]].add(event["name"])
    assert names and all(len(n) == 1 for n in names.values())


def test_chrome_traces_have_the_same_top_level_fields(chrome):
    theirs, ours = chrome
    assert set(theirs) - set(ours) <= {"deviceProperties", "host_name", "traceName"}
    assert ours["schemaVersion"] == theirs["schemaVersion"]
    assert ours["with_flops"] == ours["profile_memory"] == ours["record_shapes"] == 1
    assert abs(ours["baseTimeNanoseconds"] - theirs["baseTimeNanoseconds"]) < 200 * 86400 * 10**9
