"""events(), key_averages() and kineto_results: what torch's own objects answer, ours answer, too."""

import copy
import inspect
import pickle

import pytest
import torch
import torch.utils.data
from torch._C import _profiler as kineto
from torch.profiler import record_function

import firelane.profiler

CPU = [torch.profiler.ProfilerActivity.CPU]
PROFILES = pytest.mark.parametrize(
    "profile", [torch.profiler.profile, firelane.profiler.profile], ids=["torch", "ours"]
)


def add():
    torch.ones(4).add(1)


def names(prof):
    return sorted(event.name for event in prof.events())


def test_events_can_be_copied(both):
    for prof in both(add):
        assert sorted(e.name for e in copy.deepcopy(prof.events())) == names(prof)
        assert sorted(e.name for e in pickle.loads(pickle.dumps(prof.events()))) == names(prof)
        assert vars(prof.events()[0])["name"] == prof.events()[0].name


def test_a_range_that_is_never_closed_is_asynchronous(both):
    opened = []

    def run():
        opened.append(record_function("open"))
        opened[-1].__enter__()
        with record_function("closed"):
            add()

    theirs, ours = both(run)
    events = {e.name: e for e in ours.events()}
    assert (events["open"].is_async, events["open"].self_cpu_time_total, events["open"].cpu_children) == (True, 0, [])
    # torch lists it, or does not, depending on what lies around it; never as a parent.
    for prof in (theirs, ours):
        closed = next(e for e in prof.events() if e.name == "closed")
        assert closed.cpu_parent is None
        assert [child.name for child in closed.cpu_children] == ["aten::ones", "aten::add"]


def test_the_whole_is_not_exceeded_by_an_open_range(both):
    opened = []

    def run():
        with record_function("outer"):
            opened.append(record_function("open"))
            opened[-1].__enter__()
            add()
        for _ in range(100):
            add()

    for prof in both(run):
        whole = max(e.time_range.end for e in prof.events()) - min(e.time_range.start for e in prof.events())
        assert prof.key_averages().self_cpu_time_total <= whole


def test_ids_are_unique_over_profiles_and_cycles():
    seen = set()
    for _ in range(3):
        with firelane.profiler.profile(activities=CPU) as prof:
            add()
        ids = [e.correlation_id() for e in prof.profiler.kineto_results.events() if e.correlation_id()]
        assert len(ids) == len(set(ids)) > 0
        assert not seen & set(ids)
        seen |= set(ids)
    steps = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with firelane.profiler.profile(activities=CPU, schedule=steps, acc_events=True) as prof:
        for _ in range(4):
            add()
            prof.step()
    ids = [e.id for e in prof.events()]
    assert len(ids) == len(set(ids))


def test_metadata_json_is_empty_unless_asked_for(both):
    theirs, ours = both(add)
    has_field = hasattr(theirs.events()[0], "metadata_json")  # torch 2.15 has not
    for prof in (theirs, ours) if has_field else (ours,):
        assert {e.metadata_json for e in prof.events()} == {""}
    if "expose_kineto_event_metadata:" not in (kineto._ExperimentalConfig.__init__.__doc__ or ""):
        return  # older than 2.11: nobody can ask for it
    for prof in both(add, config={"expose_kineto_event_metadata": True})[0 if has_field else 1 :]:
        texts = [e.metadata_json for e in prof.events() if e.name == "aten::add"]
        assert texts and all("Ev Idx" in text for text in texts)


@pytest.mark.parametrize("with_flops", [False, True])
def test_shapes_alone_gave_rows_flops_that_torchs_have_not(both, with_flops):
    x = torch.ones(3, 4)
    for prof in both(lambda: x @ x.T, record_shapes=True, with_flops=with_flops):
        wanted = 2 * 3 * 4 * 3 if with_flops else 0
        assert [e.flops for e in prof.events() if e.name == "aten::mm"] == [wanted]
        assert [e.flops for e in prof.key_averages() if e.key == "aten::mm"] == [wanted]


def helper():
    add()


@pytest.mark.parametrize("through_events", [False, True])
def test_python_functions_are_rows_for_who_asks(both, through_events):
    def rows(prof, **asked):
        source = prof.events() if through_events else prof
        return {row.key: row for row in source.key_averages(**asked)}

    theirs, ours = both(helper, with_stack=True)
    assert not any("helper" in key for key in rows(ours))
    found = rows(ours, include_python_functions=True)
    (key,) = (key for key in found if key.endswith(": helper"))
    assert found[key].count == 1
    assert found[key].cpu_time_total >= found["aten::add"].cpu_time_total >= found["aten::add"].self_cpu_time_total
    if torch.__version__ >= (2, 14):
        assert key in rows(theirs, include_python_functions=True)
        assert set(rows(theirs)) == set(rows(ours))


def test_python_functions_are_events_where_torchs_are(both):
    def described(prof):
        (event,) = (e for e in prof.events() if e.name.endswith(": helper"))
        parents = [e.name for e in prof.events() if e.name == "aten::add" and e.cpu_parent is not None]
        return event.is_python_function, event.activity_type, event.python_module_id, event.stack, parents

    theirs, ours = both(helper, with_stack=True)
    if torch.__version__ < (2, 12):
        assert not any(": helper" in e.name for prof in (theirs, ours) for e in prof.events())
    else:
        assert described(ours) == described(theirs)
        assert all(e.python_id > 0 for e in ours.events() if e.is_python_function)


@pytest.mark.skipif(
    "post_processing_timeout_s" not in inspect.signature(torch.profiler.profile).parameters,
    reason="the profiler of this torch has no limit for the time of events()",
)
def test_events_end_where_the_time_for_them_does(both, caplog):
    def run():
        for _ in range(10):
            torch.ones(2).add(1)

    for prof in both(run, post_processing_timeout_s=0.0):
        caplog.clear()
        with caplog.at_level("WARNING", logger="torch.autograd.profiler"):
            events = prof.events()
        assert "timed out after 0.000 seconds, returning partial results with 0 events" in caplog.text
        assert len(events) == 0
    theirs, ours = both(run, post_processing_timeout_s=60.0)
    assert len(ours.events()) == len(theirs.events()) > 20


def test_events_that_were_cut_off_have_the_children_that_there_are(monkeypatch):
    with firelane.profiler.profile(activities=CPU, post_processing_timeout_s=1.0) as prof, record_function("all of it"):
        for _ in range(1200):
            torch.ones(2)
    clock = iter([0.0, 0.5, 2.0])  # for the first thousand
    monkeypatch.setattr("firelane.profiler._events.time.perf_counter", lambda: next(clock))
    events = prof.events()
    monkeypatch.undo()
    assert len(events) == 1000
    (whole,) = [event for event in events if event.name == "all of it"]
    assert len(whole.cpu_children) == len([event for event in events if event.name == "aten::ones"])
    assert [row.count for row in prof.key_averages() if row.key == "aten::ones"] == [1200]  # tables have everything


def test_a_profile_for_the_trace_alone_has_no_events(tmp_path):
    config = kineto._ExperimentalConfig()
    if not hasattr(config, "trace_only"):
        pytest.skip("this torch has no trace_only")
    config.trace_only = True
    for profile in (torch.profiler.profile, firelane.profiler.profile):
        with profile(activities=CPU, experimental_config=config) as prof:
            add()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert "aten::add" in (tmp_path / "trace.json").read_text()
        for ask in (prof.events, prof.key_averages):
            with pytest.raises(RuntimeError, match="not available when trace_only=True"):
                ask()
        with pytest.warns(UserWarning, match="Disabling trace_only"):
            profile(activities=CPU, experimental_config=config, with_stack=True)
        assert config.trace_only


def fast_op():
    x = torch.ones(2, 3)
    with kineto._RecordFunctionFast("fast", [x, 1, 2.5, [x, x]], {"stream": 0, "grid": "grid(1)", "warm": True}):
        add()


def test_fast_ranges_have_shapes_and_keywords(both):
    def described(prof):
        event = next(e for e in prof.events() if e.name == "fast")
        return event.input_shapes, event.kwinputs

    theirs, ours = both(fast_op, record_shapes=True)
    assert described(ours) == described(theirs)
    assert described(ours)[1] == {"stream": 0, "grid": "grid(1)", "warm": True}


def test_fast_ranges_without_shapes(both):
    for prof in both(fast_op):
        event = next(e for e in prof.events() if e.name == "fast")
        assert (event.input_shapes, event.kwinputs) == ([], {})


def test_fast_ranges_refuse_what_torch_refuses():
    with firelane.profiler.profile(activities=CPU), pytest.raises(RuntimeError, match="must be a string"):
        kineto._RecordFunctionFast(3)


def test_torch_believes_that_a_profiler_is_on():
    for profile in (torch.profiler.profile, firelane.profiler.profile):
        assert not torch.autograd._profiler_enabled()
        with profile(activities=CPU):
            assert torch.autograd._profiler_enabled()
            assert torch._C._autograd._profiler_type() == kineto.ActiveProfilerType.KINETO
        assert not torch.autograd._profiler_enabled()
        assert torch._C._autograd._profiler_type() == kineto.ActiveProfilerType.NONE


class Numbers(torch.utils.data.IterDataPipe):
    def __iter__(self):
        yield from range(3)


def test_ranges_of_data_pipes(both):
    theirs, ours = both(lambda: list(Numbers()))
    assert names(ours) == names(theirs)
    assert any("Numbers" in name for name in names(ours))


def test_lines_of_torchscript(both):
    @torch.jit.script
    def scripted(x):
        return torch.relu(x + 1)

    x = torch.ones(2)
    for _ in range(3):
        scripted(x)

    def stacks(prof):
        return {e.name: e.stack for e in prof.events() if e.name in ("aten::add", "aten::relu")}

    theirs, ours = both(lambda: scripted(x), config={"verbose": True}, with_stack=True)
    assert stacks(ours) == stacks(theirs)
    assert all("scripted" in stack[0] for stack in stacks(ours).values())


@PROFILES
def test_the_event_tree_is_the_same_each_time(profile):
    with profile(activities=CPU, with_stack=True, record_shapes=True, profile_memory=True) as prof:
        add()
    first, second = (prof.profiler.kineto_results.experimental_event_tree() for _ in range(2))
    assert [node.id for node in walk(first)] == [node.id for node in walk(second)]
    ids = [node.id for node in walk(first)]
    assert len(ids) == len(set(ids))


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node.children)


def test_a_range_that_is_never_closed_is_where_it_began_in_the_event_tree(both):
    opened = []

    def run():
        with record_function("outer"):
            with record_function("closed"):
                add()
            opened.append(record_function("open"))
            opened[-1].__enter__()
            with record_function("inside"):
                add()

    def parents(prof):
        nodes = walk(prof.profiler.kineto_results.experimental_event_tree())
        return [(node.name, node.parent.name if node.parent else None) for node in nodes]

    theirs, ours = both(run)
    assert parents(ours) == parents(theirs)


@PROFILES
def test_nodes_of_the_event_tree_are_typed(profile):
    module = torch.nn.Linear(3, 2)
    with profile(activities=CPU, with_stack=True, record_shapes=True, profile_memory=True) as prof:
        module(torch.ones(4, 3))
    nodes = list(walk(prof.profiler.kineto_results.experimental_event_tree()))
    op = next(node for node in nodes if node.name == "aten::addmm")
    assert op.tag == kineto._EventType.TorchOp
    assert isinstance(op.extra_fields, kineto._ExtraFields_TorchOp)
    assert op.typed[0] == kineto._EventType.TorchOp
    assert [list(t.sizes) for t in op.extra_fields.inputs[:3]] == [[2], [4, 3], [3, 2]]
    assert op.extra_fields.inputs[0].dtype == torch.float32
    call = next(node for node in nodes if node.name == "nn.Module: Linear_0")
    assert isinstance(call.extra_fields, kineto._ExtraFields_PyCall)
    assert call.extra_fields.module.cls_name == "Linear"
    sizes = [n.extra_fields.alloc_size for n in nodes if n.tag == kineto._EventType.Allocation]
    assert 4 * 2 * 4 in sizes
    parents = {node.name for node in iter_parents(op)}
    assert "nn.Module: Linear_0" in parents


def iter_parents(node):
    while node.parent is not None:
        node = node.parent
        yield node


@PROFILES
def test_torchs_own_analyses_run_on_the_tree(profile):
    from torch.profiler import _utils

    if not hasattr(_utils, "BasicEvaluation"):
        pytest.skip("torch 2.15 has no such analysis any more")
    with profile(activities=CPU, with_stack=True, record_shapes=True, profile_memory=True) as prof:
        add()
    evaluation = _utils.BasicEvaluation(prof.profiler)
    assert {event.name for event in evaluation.events} >= {"aten::ones", "aten::add"}


class Tidy(torch.nn.Module):
    """Something for each pattern of TorchTidy that a CPU can show."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(self.conv(x)).sum()


def test_pattern_matchers_find_the_same_lines(capsys, no_collections):
    matcher = pytest.importorskip("torch.profiler._pattern_matcher", reason="torch 2.15 has it no more")
    model = Tidy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    loader = torch.utils.data.DataLoader(torch.ones(4, 3, 8, 8), batch_size=2)

    def run():
        for batch in loader:
            optimizer.zero_grad(set_to_none=False)
            model(batch).backward()
            optimizer.step()

    def matches(profile):
        with profile(activities=CPU, with_stack=True, record_shapes=True, profile_memory=True) as prof:
            run()
        matcher.report_all_anti_patterns(prof, json_report_dir=None)
        lines = [line for line in capsys.readouterr().out.splitlines() if "Location" in line]
        classes = [getattr(matcher, name) for name in PATTERNS]
        counts = {each.__name__: len(each(prof).matched_events()) for each in classes}
        return counts, lines

    run()
    theirs, ours = matches(torch.profiler.profile), matches(firelane.profiler.profile)
    assert ours == theirs
    assert all(ours[0].values()), ours


PATTERNS = (
    *("OptimizerSingleTensorPattern", "SynchronizedDataLoaderPattern", "GradNotSetToNonePattern"),
    "Conv2dBiasFollowedByBatchNorm2dPattern",
)


@PROFILES
def test_memory_profile_has_a_timeline_with_categories(profile):
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(activities=CPU, with_stack=True, record_shapes=True, profile_memory=True) as prof:
        for _ in range(2):
            model(torch.ones(8, 64)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    timeline = prof._memory_profile().timeline
    found = prof._memory_profile()._categories
    actions = {action.name for _, action, *_ in timeline}
    assert {"CREATE", "DESTROY"} <= actions
    categories = {found.get(key, version) for _, _, (key, version), _ in timeline}
    assert {"GRADIENT"} <= {category.name for category in categories if category is not None}
