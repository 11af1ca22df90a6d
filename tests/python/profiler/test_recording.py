"""What is recorded, saved and exported, with the real recorder."""

import gzip
import json
import os
import platform
import re
import time

import pytest
import torch

import firelane
import programs
from firelane.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
from firelane.profiler._commit import commit_of

EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def add():
    return torch.ones(4) + torch.ones(4)


def names(prof):
    return {row.key for row in prof.key_averages()}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Puts the recorder's files where the test can see them."""
    monkeypatch.setenv("FIRELANE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_is_left_behind(own_folder):
    with profile() as prof:
        add()
    assert "aten::add" in names(prof)
    del prof
    assert list(own_folder.iterdir()) == []


def test_a_schedule_records_its_steps_and_times_the_others():
    run = programs.transformer()
    with profile(schedule=schedule(wait=2, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(6):
            run()
            prof.step()
    steps = [row for row in prof.key_averages() if row.key == "ProfilerStep*"]
    assert len(steps) == 1 and steps[0].count == 2
    assert [row["number"] for row in prof.trace.steps] == [3, 4]
    assert {"forward", "Optimizer.step#AdamW.step", "aten::linear"} <= names(prof)


def test_a_live_profiler_can_be_diagnosed():
    run = programs.transformer()
    verdicts = []
    with profile(
        schedule=schedule(wait=4, warmup=1, active=3, repeat=1), on_trace_ready=lambda p: verdicts.append(p.diagnose())
    ) as prof:
        for _ in range(8):
            run()
            prof.step()
    (in_callback,) = verdicts
    after_stop = prof.diagnose()
    assert list(after_stop) == list(in_callback) == list(prof.trace.diagnose())
    assert str(after_stop) == str(in_callback) and "a step takes" in str(after_stop)
    assert "<strong>Verdict</strong>" in after_stop._repr_html_()
    step = prof.trace.diagnosis["step"]
    assert step["judged_steps"] >= 1 and step["known_from"] == "timed without recording"


def test_a_diagnosis_needs_a_complete_cycle():
    prof = profile()
    prof.start()
    with pytest.raises(RuntimeError, match="still recording"):
        prof.diagnose()
    prof.stop()
    assert "nothing to analyze" in str(prof.diagnose())


def test_the_code_that_a_diagnosis_of_nothing_recommends_marks_steps():
    prof = profile()
    prof.start()
    prof.stop()
    said = " ".join(str(prof.diagnose()).split())
    (code,) = re.findall(r"run some steps inside `(with .*?:)`, with prof[.]step[(][)] after each", said)
    names = {"firelane": firelane, "add": add}
    exec(f"{code}\n    for _ in range(3):\n        add()\n        prof.step()", names)
    assert [row["number"] for row in names["prof"].trace.steps] == [1, 2]


def test_each_cycle_gets_its_own_file(own_folder):
    handler = tensorboard_trace_handler(str(own_folder / "log"), worker_name="w", use_gzip=True)
    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler) as prof:
        for _ in range(4):
            add()
            prof.step()
    files = sorted((own_folder / "log").iterdir())
    assert len(files) == 2
    for file in files:
        with gzip.open(file, "rt") as opened:
            assert any(e["name"] == "aten::add" for e in json.load(opened)["traceEvents"])


@pytest.mark.parametrize("accumulate", [False, True])
def test_accumulated_events_come_from_all_cycles(accumulate):
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=accumulate) as prof:
        for _ in range(6):
            add()
            prof.step()
    cycles = 3 if accumulate else 1
    rows = {row.key: row.count for row in prof.key_averages()}
    assert rows["aten::add"] == cycles and rows["ProfilerStep*"] == cycles
    assert sum(event.name == "aten::add" for event in prof.events()) == cycles


def test_results_of_the_last_cycle_stay_until_the_next_is_complete():
    with profile(schedule=schedule(wait=0, warmup=1, active=1)) as prof:
        for _ in range(2):
            add()
            prof.step()
        assert "aten::add" in names(prof)  # step 2 is a warm-up
    assert "aten::add" in names(prof)


def test_exporting_twice_works(own_folder):
    with profile() as prof:
        add()
    for name in ("a.json", "b.json", "c.json.gz"):
        prof.export_chrome_trace(name)
        written = firelane.open(name).sql("select 1 from host_slices where kind != 'span'")  # the window itself
        assert len(written) == len(prof.trace.host_slices)


def test_a_saved_trace_is_the_same_trace(own_folder):
    with profile(record_shapes=True) as prof:
        add()
    before = prof.key_averages(group_by_input_shape=True).table()
    prof.save("run.lane")
    prof.save("copy.lane")
    assert prof.key_averages(group_by_input_shape=True).table() == before
    prof.export_chrome_trace("after.json")
    del prof
    assert sorted(path.name for path in own_folder.iterdir()) == ["after.json", "copy.lane", "run.lane"]
    assert len(firelane.open("run.lane").host_slices) == len(firelane.open("copy.lane").host_slices)


def test_metadata_arrives_in_the_trace(own_folder):
    prof = profile(profile_memory=True)
    prof.preset_metadata_json("preset", '{"a": [1, 2]}')
    with prof:
        prof.add_metadata("text", 'say "hi"')
        prof.add_metadata_json("number", "3")
        add()
    prof.export_chrome_trace("t.json")
    with open("t.json") as file:
        trace = json.load(file)
    assert trace["preset"] == {"a": [1, 2]} and trace["text"] == 'say "hi"' and trace["number"] == 3
    assert trace["profile_memory"] == 1 and trace["trace_id"] == prof.get_trace_id()


def test_stacks_work_without_a_verbose_config(own_folder):
    def inner():
        return add()

    with profile(with_stack=True) as prof:
        for _ in range(50):
            inner()
    rows = [row for row in prof.key_averages(group_by_stack_n=3) if row.key == "aten::add"]
    assert any("inner" in frame for row in rows for frame in row.stack)
    assert "Source Location" in prof.key_averages(group_by_stack_n=3).table()
    prof.export_stacks("stacks.txt")
    with open("stacks.txt") as file:
        lines = file.read().splitlines()
    assert any("inner" in line and line.rsplit(" ", 1)[1].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks("stacks.txt", "wrong")


def test_export_stacks_needs_stacks():
    with profile() as prof:
        add()
    with pytest.raises(AssertionError, match="with_stack=True"):
        prof.export_stacks("stacks.txt")


def test_modules_are_named_by_their_path_in_the_model():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])

        def forward(self, x):
            return self.layers[1](self.layers[0](x))

    net = Net()
    with profile(with_modules=True) as prof:
        net(torch.ones(1, 2))
    assert any("layers.1" in row["name"] for row in prof.trace.host_slices)


def test_an_export_is_complete_when_the_callback_opens_it(own_folder):
    sizes = []

    def handler(prof):
        prof.export_chrome_trace("t.json")
        sizes.append(len(json.loads((own_folder / "t.json").read_text())["traceEvents"]))

    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=handler) as prof:
        for _ in range(3):
            torch.ones(1)
            prof.step()
    assert len(sizes) == 1 and sizes[0] > 0


def test_memory_from_before_the_recording_is_attributed_to_its_owner(own_folder):
    model = torch.nn.Linear(100, 10, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=False)
        model(torch.ones(2, 100)).sum().backward()
        optimizer.step()

    step()
    with profile(**EVERYTHING) as prof:
        step()
    prof.export_memory_timeline("m.raw.json.gz", "cpu")
    with gzip.open("m.raw.json.gz", "rt") as file:
        before = [(size, category) for time, action, size, category in json.load(file) if time == -1]
    assert {(4000, 0), (4000, 1), (4000, 5)} <= set(before)  # the weight, its momentum, its gradient


def test_kineto_results_offer_what_other_libraries_use(own_folder):
    with profile() as prof:
        assert prof.profiler.kineto_results is None
        add()
    results = prof.profiler.kineto_results
    events = {event.name(): event for event in results.events()}
    ones, fill = events["aten::ones"], events["aten::fill_"]
    assert results.trace_start_ns() <= ones.start_ns() <= fill.start_ns() <= fill.end_ns() <= ones.end_ns()
    assert abs(ones.start_ns() / 1e9 - time.time()) < 600
    roots = results.experimental_event_tree()
    assert [node.name for node in roots] == ["aten::ones", "aten::ones", "aten::add"]
    assert "aten::fill_" in {child.name for child in roots[0].children}
    assert all(child.parent is roots[0] for child in roots[0].children)
    results.save("again.json")
    assert json.loads((own_folder / "again.json").read_text())["traceEvents"]


def test_memory_timeline_in_all_formats(own_folder):
    with profile(**EVERYTHING) as prof:
        for _ in range(3):
            torch.ones(1000).sum()
    for name in ("m.html", "m.json", "m.json.gz", "m.raw.json.gz"):
        prof.export_memory_timeline(name, "cpu")
    times, sizes = json.loads((own_folder / "m.json").read_text())
    assert len(times) == len(sizes) > 0 and len(sizes[0]) == 9 and max(map(sum, sizes)) >= 4000
    with gzip.open("m.json.gz", "rt") as file:
        assert json.load(file) == [times, sizes]
    with gzip.open("m.raw.json.gz", "rt") as file:
        raw = json.load(file)
    assert {event[1] for event in raw} <= {1, 2, 4} and sum(event[2] for event in raw) == sum(sizes[-1])
    assert "<svg" in (own_folder / "m.html").read_text()


def test_toggling_leaves_a_gap():
    with profile() as prof:
        torch.ones(1).exp()
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.ones(1).sin()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.ones(1).cos()
    assert {"aten::exp", "aten::cos"} <= names(prof) and "aten::sin" not in names(prof)


def test_user_annotations_and_notebooks():
    with firelane.profile() as prof, record_function("my part"):
        add()
    assert "my part" in names(prof)
    assert prof._repr_html_().startswith("<pre>") and "my part" in prof._repr_html_()
    assert prof.losses == []


def test_install_replaces_torchs_profiler_and_uninstall_restores_it():
    original = torch.profiler.profile
    firelane.install()
    firelane.install()
    try:
        assert torch.profiler.profile is profile
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1)) as prof:
            add()
            prof.step()
            add()
        assert "aten::add" in names(prof)
    finally:
        firelane.uninstall()
    assert torch.profiler.profile is original and torch.profiler.profiler.profile is original


def test_execution_trace_observer_is_passed_through(own_folder):
    observer = torch.profiler.ExecutionTraceObserver().register_callback("et.json")
    with profile(execution_trace_observer=observer):
        add()
    nodes = json.loads((own_folder / "et.json").read_text())["nodes"]
    assert any(node["name"] == "aten::add" for node in nodes)


def test_lightnings_way_of_using_a_profiler_works(own_folder):
    """Filters arguments by signature; calls step() from hooks; __exit__, then events().key_averages()."""
    import inspect

    wanted = {"schedule": schedule(wait=1, warmup=1, active=2), "record_shapes": True, "no_such_argument": 1}
    accepted = inspect.signature(profile.__init__).parameters
    prof = profile(**{k: v for k, v in wanted.items() if k in accepted})
    prof.on_trace_ready = lambda p: p.export_chrome_trace("lightning.json")
    prof.__enter__()
    prof.add_metadata_json("Framework", '"pytorch-lightning"') if prof.profiler else None
    for _ in range(5):
        add()
        prof.step()
    prof.__exit__(None, None, None)
    events = prof.events()
    table = events.key_averages(group_by_input_shapes=True).table(sort_by="cpu_time_total", row_limit=20)
    assert "aten::add" in table and (own_folder / "lightning.json").exists()


def test_kernel_names_from_torch_compile_are_recorded():
    own = torch._C._profiler._RecordFunctionFast
    with profile() as prof:
        with torch._C._profiler._RecordFunctionFast("triton_fused_add", [], {"grid": 1}):
            add()
        with torch._C._profiler._RecordFunctionFast("## Call graph ##", keyword_values={"scope": "user_scope"}):
            add()
    assert torch._C._profiler._RecordFunctionFast is own
    kinds = {row["name"]: row["kind"] for row in prof.profiler.trace.host_slices}
    assert kinds["triton_fused_add"] == "op"
    assert kinds["## Call graph ##"] == "annotation"
    parents = {row["id"]: row["name"] for row in prof.profiler.trace.host_slices}
    adds = [row for row in prof.profiler.trace.host_slices if row["name"] == "aten::add"]
    assert parents[adds[0]["parent"]] == "triton_fused_add"


def test_steps_without_a_schedule_are_marked_in_firelanes_own_profile():
    with firelane.profile() as prof:
        for _ in range(4):
            add()
            prof.step()
    assert [row["number"] for row in prof.trace.steps] == [1, 2, 3]


def test_after_saving_the_trace_names_the_saved_file(own_folder):
    with profile() as prof:
        add()
    assert prof.trace is not None
    prof.save(own_folder / "kept.lane")
    assert prof.trace.info["path"] == str(own_folder / "kept.lane")


def test_a_trace_knows_the_machine_torchs_settings_and_who_recorded_it(own_folder):
    (own_folder / ".git").mkdir()
    (own_folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (own_folder / ".git" / "packed-refs").write_text("# pack-refs\n0123abcd refs/heads/main\n")
    for front, make in (("firelane.profiler", profile), ("firelane.profile", firelane.profile)):
        with make() as prof:
            add()
        prof.export_chrome_trace("trace.json")
        trace = json.loads((own_folder / "trace.json").read_text())
        assert trace["machine"]["cores_allowed"] == len(os.sched_getaffinity(0)) <= trace["machine"]["cores"]
        assert trace["torch"]["version"] == torch.__version__.partition("+")[0]
        assert trace["torch"]["threads"] == torch.get_num_threads()
        assert (trace["front"], trace["commit"]) == (front, "0123abcd")
        assert trace["python"] == platform.python_version()


@pytest.mark.parametrize("layout", ["branch", "detached", "worktree", "none"])
def test_the_commit_is_found_where_git_keeps_it(own_folder, layout):
    git = own_folder / ".git"
    if layout == "worktree":
        git.write_text("gitdir: main/.git/worktrees/w\n")
        shared = own_folder / "main" / ".git"
        git = shared / "worktrees" / "w"
        git.mkdir(parents=True)
        (git / "commondir").write_text("../..\n")
    else:
        git.mkdir()
        shared = git
    if layout != "none":
        (git / "HEAD").write_text("feed\n" if layout == "detached" else "ref: refs/heads/x\n")
    (shared / "refs" / "heads").mkdir(parents=True)
    (shared / "refs" / "heads" / "x").write_text("beef\n")
    below = own_folder / "a" / "b"
    below.mkdir(parents=True)
    assert commit_of(str(below)) == {"detached": "feed", "none": ""}.get(layout, "beef")
