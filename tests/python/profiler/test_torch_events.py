"""events(), key_averages() and the table compared with torch's own, from the very same trace."""

import copy
import inspect
import operator
import pickle
import re

import pytest
import torch
from torch.profiler import ProfilerActivity, record_function

import firelane
import programs
from firelane.profiler import _events, _table, profile, schedule

FIELDS = (
    "id name trace_name sequence_nr scope input_shapes concrete_inputs kwinputs cpu_memory_usage "
    "self_cpu_memory_usage is_async is_user_annotation flops count node_id device_type device_index "
    "device_resource_id use_device is_legacy is_remote"
).split()
ROW_FIELDS = "count cpu_memory_usage self_cpu_memory_usage flops input_shapes is_user_annotation device_type".split()
if not programs.HAS_EXACT_MEMORY:
    FIELDS, ROW_FIELDS = ([f for f in fields if not f.endswith("memory_usage")] for fields in (FIELDS, ROW_FIELDS))


def sorted_by_start(events):
    return sorted(events, key=lambda event: event.time_range.start)


def record(**flags):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    x = torch.randn(16, 64)
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], **flags) as prof:
        for _ in range(2):
            y = model(x.double().float())
            torch.cat([y, y])
            with record_function("the loss"):
                y.sum().backward()
    return prof


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    prof = record(record_shapes=True, profile_memory=True, with_flops=True)
    path = str(tmp_path_factory.mktemp("trace") / "t.json")
    prof.export_chrome_trace(path)
    trace = firelane.open(path)

    def averages(shapes=False, stack=0, overload=False, functions=False):
        rows = _events.averages_of(trace._key_averages(shapes, stack), None)
        return _events.EventList(rows, profile_memory=True, with_flops=True)

    source = _events.EventSource(trace._function_events(), None)
    return _events.RecordedEvents([source], averages, profile_memory=True, with_flops=True), prof


def test_event_fields_match_torch(both):
    ours, prof = both
    theirs = prof.events()
    assert len(ours) == len(theirs) > 100
    for a, b in zip(ours, theirs, strict=True):
        if a.name != "[memory]":  # torch leaves most of their fields unset
            assert {f: getattr(a, f) for f in FIELDS} == {f: getattr(b, f) for f in FIELDS}
        else:
            assert a.cpu_memory_usage == b.cpu_memory_usage
        assert a.time_range.elapsed_us() == pytest.approx(b.time_range.elapsed_us(), abs=0.002)
        assert a.self_cpu_time_total == pytest.approx(b.self_cpu_time_total, abs=0.1)


def test_event_parents_and_children_match_torch(both):
    ours, prof = both
    theirs = prof.events()
    our_place = {id(e): i for i, e in enumerate(ours)}
    their_place = {id(e): i for i, e in enumerate(theirs)}
    for a, b in zip(ours, theirs, strict=True):
        assert (a.cpu_parent and our_place[id(a.cpu_parent)]) == (b.cpu_parent and their_place[id(b.cpu_parent)])
        assert [our_place[id(c)] for c in a.cpu_children] == [their_place[id(c)] for c in b.cpu_children]


@pytest.mark.parametrize("by_shape", [False, True])
def test_rows_match_torch(both, by_shape):
    ours, prof = both
    rows, wanted = ours.key_averages(by_shape), prof.key_averages(by_shape)
    assert [r.key for r in rows] == [w.key for w in wanted]
    for row, want in zip(rows, wanted, strict=True):
        assert isinstance(row, torch.autograd.profiler_util.FunctionEventAvg)
        for field in ROW_FIELDS:
            assert getattr(row, field) == getattr(want, field), (row.key, field)
        assert row.cpu_time_total == pytest.approx(want.cpu_time_total, abs=0.1)
        assert row.self_cpu_time_total == pytest.approx(want.self_cpu_time_total, abs=0.5)
        assert (row.cpu_parent is None) == (want.cpu_parent is None)


def test_totals_match_torch(both):
    ours, prof = both
    assert ours.self_cpu_time_total == pytest.approx(prof.events().self_cpu_time_total, rel=1e-4)
    total, wanted = ours.total_average(), prof.events().total_average()
    assert (total.key, total.count) == (wanted.key, wanted.count)


def test_a_list_of_events_is_a_list(both):
    ours, _ = both
    assert ours and isinstance(ours, list) and ours[0] in ours
    assert sorted(ours, key=lambda e: e.time_range.start)[:1] == [ours[0]]
    assert [e.name for e in ours[:2]] == [ours[0].name, ours[1].name]
    with pytest.raises(AttributeError):
        _ = ours[0].no_such_field


@pytest.mark.parametrize(
    "use",
    [
        lambda events: [] + events,  # noqa: RUF005 (the operator is what is tested)
        lambda events: events + [],  # noqa: RUF005 (as above)
        lambda events: operator.iadd(events, []),
        lambda events: events * 1,
        lambda events: 1 * events,
        lambda events: [*events],
        lambda events: events[:],
        lambda events: events if events != [] else [],
        copy.copy,
        sorted_by_start,
    ],
)
def test_a_list_that_nobody_has_looked_at_is_complete_in_every_expression(both, use):
    filled, _ = both
    fresh = _events.RecordedEvents(filled._sources, filled._averages)
    assert len(use(fresh)) == len(filled)


GROUPINGS = [{}, {"group_by_input_shape": True}, {"group_by_stack_n": 3}]
LAYOUTS = [
    {},
    {"sort_by": "self_cuda_time_total", "row_limit": 5},
    {"sort_by": "cpu_memory_usage", "header": "header", "top_level_events_only": True, "time_unit": "ms"},
    {"max_name_column_width": 20, "max_src_column_width": 30, "max_shapes_column_width": 25, "row_limit": -1},
]
FLAGS = [
    {},
    {"record_shapes": True, "profile_memory": True},
    {"with_flops": True, "profile_memory": True},
    {"with_stack": True, "experimental_config": torch.profiler._ExperimentalConfig(verbose=True)},
]


def with_newer_units(table):
    """As newer torches print sizes: 1.50 KB, where 2.6 has 1.50 Kb. Ours are the newer units with any torch."""
    return re.sub(r"(\d [GMK]?)b\b", r"\1B", table)


@pytest.mark.parametrize("flags", FLAGS, ids=lambda f: "+".join(f) or "plain")
def test_the_table_of_the_same_rows_matches_torch_exactly(flags):
    prof = record(**flags)
    for grouping in GROUPINGS:
        rows = prof.key_averages(**grouping)
        for layout in LAYOUTS:
            if "time_unit" in layout and "time_unit" not in inspect.signature(rows.table).parameters:
                continue  # an older torch
            ours = _table.build_table(rows, profile_memory=prof.profile_memory, with_flops=prof.with_flops, **layout)
            assert ours == with_newer_units(rows.table(**layout))


def test_flops_and_source_location_are_under_their_own_headers():
    prof = record(with_flops=True, **FLAGS[3])
    rows = prof.key_averages(group_by_stack_n=1)
    header, *lines = _table.build_table(rows, with_flops=True).splitlines()[1:]
    assert header.split("  ")[-2].strip() != "Total KFLOPs" and header.rstrip().endswith("Source Location")
    mm = next(line for line in lines if " aten::addmm " in line)
    assert mm[header.index("Source Location") :].strip().endswith(tuple(r.stack[0][-20:] for r in rows if r.stack))


def test_an_empty_table_is_empty():
    assert _table.build_table([]) == ""


def two_cycles():
    with profile(record_shapes=True, schedule=schedule(wait=1, warmup=1, active=1, repeat=2), acc_events=True) as prof:
        for _ in range(6):
            torch.nn.functional.linear(torch.ones(2, 4), torch.ones(4, 4, requires_grad=True)).sum().backward()
            prof.step()
    return prof


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda events: pickle.loads(pickle.dumps(events))], ids=["deepcopy", "pickle"]
)
def test_events_can_be_copied_and_pickled(duplicate):
    events = two_cycles().events()
    copied = duplicate(events)
    assert [event.name for event in copied] == [event.name for event in events]
    assert copied.table(sort_by="cpu_time_total") == events.table(sort_by="cpu_time_total")
    averages, expected = ({row.key: row.count for row in rows.key_averages()} for rows in (copied, events))
    assert averages == expected
    place = next(i for i, event in enumerate(events) if event.cpu_parent is not None)
    assert copied[place].cpu_parent in list(copied) and copied[place] in copied[place].cpu_parent.cpu_children


def test_a_copied_event_shares_its_relatives():
    event = next(event for event in two_cycles().events() if event.cpu_parent is not None)
    copied = copy.copy(event)
    assert copied.name == event.name and copied.cpu_parent is event.cpu_parent


def test_vars_of_an_event_are_torchs_fields():
    with torch.profiler.profile() as theirs:
        torch.ones(2)
    ours, others = vars(two_cycles().events()[0]), vars(theirs.events()[0])
    assert ours.keys() >= others.keys() and ours["name"] == "ProfilerStep*"  # and what torch 2.15 added
    name = "_metadata_json" if "_metadata_json" in others else "metadata_json"  # torch 2.12 to 2.14 have a property
    assert ours[name] == "" == others.get(name, "")  # torch 2.15 has it no more


def test_ids_of_accumulated_cycles_do_not_repeat():
    ids = [event.id for event in two_cycles().events() if event.id]
    assert len(ids) == len(set(ids)) > 9


def test_the_event_tree_has_the_same_nodes_each_time():
    prof = two_cycles()
    first, again = (prof.profiler.kineto_results.experimental_event_tree() for _ in range(2))
    assert first and all(a is b for a, b in zip(first, again, strict=True))
