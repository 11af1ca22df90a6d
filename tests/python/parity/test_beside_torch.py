"""Ours beside torch's older interfaces, and started from threads that C made."""

import ctypes
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.autograd.profiler

import firelane
import firelane.profiler

CPU = [torch.profiler.ProfilerActivity.CPU]


@pytest.fixture
def installed():
    firelane.install(autograd=True)
    yield
    firelane.uninstall()


def run():
    torch.ones(4).add(1)


def autograd_results(tmp_path, **flags):
    with torch.autograd.profiler.profile(use_kineto=True, **flags) as prof:
        run()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    ops = [e["name"] for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "cpu_op"]
    rows = sorted((row.key, row.count) for row in prof.key_averages())
    assert "aten::add" in str(prof)
    assert prof.total_average().count == sum(count for _, count in rows)
    assert prof.self_cpu_time_total > 0
    return rows, sorted(e.name for e in prof.function_events), sorted(ops)


def test_the_older_interface_gives_the_same(tmp_path):
    theirs = autograd_results(tmp_path, record_shapes=True)
    firelane.install(autograd=True)
    try:
        assert torch.autograd.profiler.profile.__module__.startswith("firelane")
        assert autograd_results(tmp_path, record_shapes=True) == theirs
    finally:
        firelane.uninstall()
    assert not torch.autograd.profiler.profile.__module__.startswith("firelane")


def test_the_older_interface_refuses_what_torchs_refuses(installed):
    prof = torch.autograd.profiler.profile()
    assert repr(prof) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        prof.key_averages()
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()
    with torch.autograd.profiler.profile(enabled=False) as nothing:
        run()
    assert nothing is None


def test_install_leaves_the_older_interface_alone_unless_asked():
    firelane.install()
    try:
        assert not torch.autograd.profiler.profile.__module__.startswith("firelane")
    finally:
        firelane.uninstall()


def test_torchs_older_profiler_inside_ours_does_no_harm():
    with firelane.profiler.profile(activities=CPU) as ours:
        with torch.autograd.profiler.profile(use_kineto=True) as theirs:
            run()
        run()
    assert sum(e.name == "aten::add" for e in ours.events()) == 2
    assert sum(e.name == "aten::add" for e in theirs.function_events) == 1


def test_ours_inside_torchs_older_profiler_does_no_harm():
    with torch.autograd.profiler.profile(use_kineto=True) as theirs:
        with firelane.profiler.profile(activities=CPU) as ours:
            run()
        run()
    assert sum(e.name == "aten::add" for e in ours.events()) == 1
    assert sum(e.name == "aten::add" for e in theirs.function_events) == 2


def test_the_first_recording_inside_torchs_profiler_filled_it_with_our_measurements(tmp_path):
    """In a process of its own: what recording costs is measured once, by the first one."""
    program = """
import sys, firelane.profiler, torch
cpu = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=cpu, profile_memory=True) as theirs:
    with firelane.profiler.profile(activities=cpu, profile_memory=True) as ours:
        torch.ones(4).add(1)
    torch.ones(4).add(1)
ours.save(sys.argv[1])
print(*(event.name for event in theirs.events()))
"""
    path = tmp_path / "inside.lane"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(firelane.__file__).parents[1])},
    )
    names = Counter(done.stdout.split())
    assert names["aten::add"] == 2
    assert "aten::add_" not in names
    assert names["[memory]"] < 20
    costs = {row["event"].partition("+")[0] for row in firelane.open(str(path)).info["recorder_costs"]}
    assert {"op", "memory"} <= costs


def call_on_a_thread_of_c(*functions):
    """Each function enters Python again, from one thread that Python did not make."""
    library = ctypes.CDLL(None)
    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    errors = []

    def guarded(function):
        def call(_):
            try:
                function()
            except BaseException as error:
                errors.append(error)

        return callback(call)

    for function in functions:
        entered = guarded(function)
        thread = ctypes.c_ulong()
        assert library.pthread_create(ctypes.byref(thread), None, entered, None) == 0
        assert library.pthread_join(thread, None) == 0
    if errors:
        raise errors[0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_start_step_and_stop_from_threads_of_c():
    steps = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    prof = firelane.profiler.profile(activities=CPU, schedule=steps, with_stack=True)

    def named_work():
        run()

    def step():
        prof.step()
        named_work()

    call_on_a_thread_of_c(prof.start, step, step, step, prof.stop)
    assert not prof.losses
    frames = {row["name"] for row in prof.trace.sql("select name from host_slices where kind = 'python'")}
    assert any(name.endswith(": named_work") for name in frames)


def test_a_profile_function_that_takes_over_is_told():
    if sys.version_info >= (3, 12):
        pytest.skip("sys.monitoring is not disturbed by profile functions")
    with pytest.warns(RuntimeWarning, match="another profile function"):
        with firelane.profiler.profile(activities=CPU, with_stack=True):
            sys.setprofile(lambda *_: None)
        sys.setprofile(None)
    assert threading.getprofile() is None


@pytest.fixture(params=["emit_nvtx", "emit_itt"])
def ranges(request, monkeypatch):
    """torch's ranges for Nsight and VTune. They also run without a GPU and without these tools: then nobody listens."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    emit = getattr(torch.autograd.profiler, request.param)
    try:
        with emit():
            pass
    except RuntimeError as error:  # a torch without NVTX or ITT
        pytest.skip(str(error))
    return emit


def names(prof):
    return [event.name for event in prof.events()]


def test_ranges_for_other_tools_do_no_harm_beside_ours(ranges):
    with firelane.profiler.profile(activities=CPU) as alone:
        run()
    with firelane.profiler.profile(activities=CPU) as outside:
        with ranges(record_shapes=True):
            run()
        run()
    assert names(outside) == names(alone) * 2
    with ranges(record_shapes=True):
        with firelane.profiler.profile(activities=CPU) as inside:
            run()
        run()
    assert names(inside) == names(alone)
    emit, overlapping = ranges(), firelane.profiler.profile(activities=CPU)
    emit.__enter__()
    overlapping.start()
    run()
    emit.__exit__(None, None, None)
    run()
    overlapping.stop()
    assert names(overlapping) == names(alone) * 2
    assert not torch.autograd._profiler_enabled()
    with torch.profiler.profile(activities=CPU) as theirs:  # torch's own state is as it was
        run()
    assert names(theirs) == names(alone)


def test_ranges_for_other_tools_do_no_harm_when_installed(ranges, installed):
    with torch.profiler.profile(activities=CPU) as prof, ranges():
        run()
    assert "aten::add" in names(prof)
    with torch.autograd.profiler.profile() as older, ranges():
        run()
    assert "aten::add" in [event.name for event in older.function_events]
