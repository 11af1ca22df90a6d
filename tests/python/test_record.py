"""The recorder's hooks: what a recording of a small torch program contains, and that nothing is left behind."""

import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import firelane

torch = pytest.importorskip("torch")
_record = pytest.importorskip("firelane._record")

ROOT = Path(__file__).resolve().parents[2]


class Run:
    """Records what happens inside `with` and then opens it as a trace."""

    def __init__(self, path, **options):
        self.path = path
        self.options = options

    def __enter__(self):
        self.recorder = _record.start(_record.RecordOptions(**self.options))
        return self

    def __exit__(self, *exc):
        self.recorder.stop()
        self.recorder.save(self.path)
        self.trace = firelane.open(str(self.path))
        self.slices = list(self.trace.host_slices)

    def names(self, kind=None):
        return [s["name"] for s in self.slices if kind is None or s["kind"] == kind]

    def one(self, name):
        (found,) = [s for s in self.slices if s["name"] == name]
        return found


@pytest.fixture
def run(tmp_path, no_collections):
    runs = iter(range(100))
    return lambda **options: Run(tmp_path / f"{next(runs)}.lane", **options)


def test_ops_are_recorded_with_their_nesting(run):
    x = torch.ones(2, 3)
    with run() as r:
        torch.nn.functional.linear(x, x)
    outer, inner = r.one("aten::linear"), r.one("aten::mm")
    assert outer["start_ns"] <= inner["start_ns"]
    assert inner["start_ns"] + inner["duration_ns"] <= outer["start_ns"] + outer["duration_ns"]
    assert r.recorder.losses == []


def test_ops_match_torch_profiler(run):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        model(torch.ones(2, 3, 8, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        step()
    with run() as r:
        step()
    # Not prof.events(), which merges an op with an only child of the same name.
    theirs = sorted(e.name() for e in prof.profiler.kineto_results.events() if not e.name().startswith("Profiler"))
    assert sorted(r.names("op") + r.names("annotation")) == theirs


def test_shapes_match_torch_profiler(run):
    x, y = torch.ones(4, 5), torch.ones(5, 6)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        torch.mm(x, y).add_(1.5)
        torch.cat([x, x], 1)
    with run(shapes=True) as r:
        torch.mm(x, y).add_(1.5)
        torch.cat([x, x], 1)
    theirs = {e.name: e.input_shapes for e in prof.events()}
    details = list(r.trace.op_details)
    dims = {s["name"]: json.loads(details[s["detail"]]["input_dims"]) for s in r.slices if s["kind"] == "op"}
    assert dims["aten::mm"] == theirs["aten::mm"] == [[4, 5], [5, 6]]
    assert dims["aten::cat"][0] == [[4, 5], [4, 5]]


def test_ops_and_memory_of_all_threads_are_recorded(run):
    def work(n):
        for _ in range(n):
            torch.ones(100)

    with run(memory=True) as r:
        threads = [threading.Thread(target=work, args=(10,)) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        work(5)
    per_lane = {}
    for s in r.slices:
        if s["name"] == "aten::ones":
            per_lane[s["lane"]] = per_lane.get(s["lane"], 0) + 1
    assert sorted(per_lane.values()) == [5, 10, 10, 10]
    events = list(r.trace.memory_events)
    assert sum(e["bytes"] == 400 for e in events) == 35
    assert sum(e["bytes"] == -400 for e in events) == 35


def test_memory_totals_return_to_zero_and_count_live_memory(run):
    with run(memory=True) as r:
        keep = torch.ones(256)
        del keep
        kept = torch.ones(512)
    events = [e["bytes"] for e in r.trace.memory_events]
    assert events == [1024, -1024, 2048]
    assert [e["total_allocated_bytes"] for e in r.trace.memory_events] == [1024, 0, 2048]
    del kept  # after stop(): freed by the original function


def test_blocks_from_before_and_after_are_freed(run):
    before = torch.ones(1000)
    with run(memory=True):
        inside = torch.ones(1000)
        del before
        before_resized = torch.ones(10)
        before_resized.resize_(5000)
    inside.resize_(20_000)
    del inside, before_resized
    with run(memory=True):
        pass
    gc.collect()
    assert torch.ones(3).sum().item() == 3


def test_an_allocation_that_fails_is_recorded_and_still_raises(run):
    with run(memory=True) as r, pytest.raises(RuntimeError):
        torch.empty(1 << 60, dtype=torch.uint8)
    assert [e["bytes"] for e in r.trace.memory_events] == [1 << 60]


def test_torch_profiler_works_inside_a_recording(run):
    with (
        run(memory=True, shapes=True) as r,
        torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as prof,
    ):
        torch.ones(300)
    assert any(e.name == "aten::ones" and e.cpu_memory_usage == 1200 for e in prof.events())
    assert "aten::ones" in r.names("op")


def test_user_ranges_end_in_any_order(run):
    with run() as r:
        a = torch.profiler.record_function("a")
        b = torch.profiler.record_function("b")
        a.__enter__()
        b.__enter__()
        torch.ones(1)
        a.__exit__(None, None, None)
        torch.zeros(1)
        b.__exit__(None, None, None)
        with _record.Range("mine", '{"n": 1}'):
            pass
    a, b = r.one("a"), r.one("b")
    assert a["start_ns"] < b["start_ns"] < a["start_ns"] + a["duration_ns"] < b["start_ns"] + b["duration_ns"]
    assert a["kind"] == "annotation" and "mine" in r.names("annotation")


def test_modules_are_named_by_their_path(run):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.ReLU()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    original = torch.nn.Module.__call__
    model = Block()
    with run(modules=True) as r:
        model(torch.ones(1, 2))
        model.layers[0](torch.ones(1, 2))
        assert torch.nn.Module.__call__.__code__ is original.__code__
    assert [n for n in r.names() if "(" in n and not n.startswith("<")] == [
        "model (Block)",
        "model.layers.0 (Linear)",
        "model.layers.1 (ReLU)",
        "model.layers.0 (Linear)",
    ]
    assert torch.nn.Module.__call__ is original


def test_torch_compile_is_not_affected(run):
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    before = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), backend=backend)
    before(torch.ones(2, 4))
    with run(modules=True, shapes=True) as r:
        before(torch.ones(2, 4))
        assert len(compiled) == 1
        inside = torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3)), backend=backend, fullgraph=True)
        inside(torch.ones(2, 3))
    before(torch.ones(2, 4))
    inside(torch.ones(2, 3))
    assert len(compiled) == 2
    assert r.recorder.losses == []


def test_an_exception_in_a_module_ends_its_slice(run):
    class Bad(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    bad = Bad()
    with run(modules=True, stacks=True) as r:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                bad(torch.ones(1))
        torch.ones(1)
    calls = [s for s in r.slices if s["name"] == "bad (Bad)"]
    assert len(calls) == 2
    assert calls[0]["start_ns"] + calls[0]["duration_ns"] <= calls[1]["start_ns"]


def test_python_frames_of_later_threads_are_recorded(run):
    def in_thread():
        return sum(range(10))

    with run(stacks=True) as r:
        t = threading.Thread(target=in_thread)
        t.start()
        t.join()
        gc.collect()
    names = r.names("python")
    assert any(n.endswith(": in_thread") for n in names)
    assert "<built-in function sum>" in names
    assert any(n.startswith("gc: generation") for n in names)
    assert sys.getprofile() is None


def test_cprofile_sees_the_same_as_without_a_recording(run):
    def traced():
        return [abs(i) for i in range(3)]

    profile = cProfile.Profile()
    profile.enable()
    with run(stacks=True) as r:
        traced()
    traced()
    profile.disable()
    calls = {key[2]: value[0] for key, value in pstats.Stats(profile).stats.items()}
    assert calls["traced"] == 2
    assert sum(n.endswith(": traced") for n in r.names("python")) == 1


def test_a_profile_function_that_takes_over_is_reported_as_a_loss(run):
    with run(stacks=True) as r:
        sys.setprofile(lambda *args: None)
        sys.setprofile(None)
    assert any("profile function" in loss.reason for loss in r.recorder.losses)


def test_a_second_recording_is_rejected_and_the_first_continues(run):
    with run() as r:
        with pytest.raises(RuntimeError, match="another recording"):
            _record.start(_record.RecordOptions())
        torch.ones(1)
    assert "aten::ones" in r.names("op")


def test_paused_time_is_not_recorded(run):
    with run(stacks=True, memory=True, start_paused=True) as r:
        torch.zeros(1)
        r.recorder.resume()
        torch.ones(1)
        r.recorder.pause()
        torch.zeros(1)
        assert not _record.is_recording()
    assert "aten::ones" in r.names() and "aten::zeros" not in r.names()


def test_a_thousand_starts_leak_nothing(tmp_path):
    original = torch.nn.Module.__call__
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    threads = threading.active_count()
    for i in range(1000):
        recorder = _record.start(
            _record.RecordOptions(
                shapes=i % 2 == 0, memory=i % 3 == 0, modules=i % 5 == 0, stacks=i % 7 == 0, output=tmp_path
            )
        )
        torch.ones(1)
        recorder.stop()
        del recorder
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors  # other tests' may be closed meanwhile
    assert threading.active_count() <= threads
    assert torch.nn.Module.__call__ is original and sys.getprofile() is None
    assert list(tmp_path.iterdir()) == []


def test_steps_are_timed_without_a_recording(run):
    timer = _record.StepTimer()
    timer.step(0, "unrecorded")
    timer.step(1, "recorded")
    timer.finish()
    assert [(n, phase) for n, phase, ns in timer.samples] == [(0, "unrecorded"), (1, "recorded")]
    assert all(ns >= 0 for _, _, ns in timer.samples)
    with run() as r:
        r.recorder.add_steps(timer)
        r.recorder.add_metadata("model", '"gpt"')
    assert timer.samples == []
    with pytest.raises(ValueError, match="phase"):
        timer.step(0, "fast")


def test_costs_are_measured(run):
    with run(shapes=True, memory=True, stacks=True):
        pass
    assert {"op+inputs", "memory", "python"} <= _record.costs().keys()


def test_data_loader_workers_are_not_disturbed(run):
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return torch.full((2,), float(i)).add_(1)

    with run(shapes=True, memory=True, stacks=True, modules=True) as r:
        batches = list(torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2))
    assert torch.cat(batches)[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert any("DataLoader" in n for n in r.names("annotation"))


def test_a_forked_child_can_make_its_own_recording(tmp_path):
    program = textwrap.dedent("""
        import os, quick_torch, sys, torch
        sys.path.insert(0, sys.argv[1])
        from firelane import _record
        recorder = _record.start(_record.RecordOptions(shapes=True, memory=True, stacks=True))
        torch.ones(3)
        pid = os.fork()
        if pid == 0:
            torch.ones(3)
            assert recorder.status().state == "forked", recorder.status().state
            own = _record.start(_record.RecordOptions(shapes=True))
            torch.zeros(3)
            own.stop()
            assert own.status().event_count >= 2, own.status().event_count
            os._exit(7)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        torch.zeros(3)
        recorder.stop()
        assert recorder.status().state == "stopped"
        sys.exit(code)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "python")],
        capture_output=True,
        text=True,
        env={**os.environ, "FIRELANE_DIR": str(tmp_path)},
        timeout=300,
        check=False,
    )
    assert done.returncode == 7, done.stderr


def test_exit_without_stop_keeps_the_exit_status(tmp_path):
    program = textwrap.dedent("""
        import quick_torch, sys, torch
        sys.path.insert(0, sys.argv[1])
        from firelane import _record
        recorder = _record.start(_record.RecordOptions(memory=True, stacks=True, modules=True))
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        sys.exit(5)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "python")],
        capture_output=True,
        text=True,
        env={**os.environ, "FIRELANE_DIR": str(tmp_path)},
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (5, "")


def test_an_unsupported_torch_is_reported_with_the_fix(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "9.9.1+cpu")
    monkeypatch.delitem(sys.modules, "firelane._record")
    with pytest.raises(ImportError, match=r"recorders for torch 2\.\d+, .*this is torch 9\.9\.1.*build-recorder"):
        import firelane._record  # noqa: F401 (the import is what is tested)
