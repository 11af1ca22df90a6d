"""Always-on recordings of programs that hang with the GIL held, and of those that catch an out-of-memory error."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firelane import _trace
from firelane._always import gil_watch

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]

# A call into C that keeps the GIL (PyDLL does, CDLL would release it) and never comes back.
HANGS = """
import ctypes, sys, time, torch
from firelane._always import run as always_run
from firelane._always.triggers import Hang
from firelane._auto import Plan

always = always_run.Always(Plan(output=sys.argv[1], options={}), 0.5, 64 << 20, tick_s=0.02, quiet_s=0)
always.install_hooks()
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(80):
    net(torch.ones(2, 4)).sum().backward()
    time.sleep(0.002)
    optimizer.step()
always.hang = Hang(factor=0, least_ns=400_000_000)  # from here on: a step may be slow, this one hangs
while always.gil_watch._limit_ms != 400:
    time.sleep(0.01)

def keeps_the_gil():
    ctypes.PyDLL(None).pause()

keeps_the_gil()
"""


def test_a_hang_with_the_gil_held_leaves_the_stacks_of_all_threads(tmp_path):
    (tmp_path / "program.py").write_text(HANGS)
    run = tmp_path / "run"
    program = subprocess.Popen(
        [sys.executable, "program.py", str(run)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    try:
        found = []
        while not found:  # a machine that pauses before may have left another incident
            assert program.poll() is None
            found = [
                path
                for path in run.glob("kept/*-hang/stacks.txt")
                if "keeps_the_gil" in path.read_text() and "keeps the GIL" in path.with_name("incident.txt").read_text()
            ]
            time.sleep(0.05)
        text = found[0].read_text()
        incident = found[0].with_name("incident.txt").read_text()
    finally:
        program.kill()
        program.wait()
    assert incident.startswith("hang: no step for ")
    main = next(part for part in text.split("\n\n") if "keeps_the_gil" in part)
    assert "holds the GIL" in main.splitlines()[0] and "program.py:" in main
    assert "no step for" in _trace.why(str(run))


def test_the_watch_tells_once_of_a_gil_that_is_kept(tmp_path):
    watch = gil_watch.GilWatch(tmp_path / "kept")
    assert watch.tick(3, 0) is None  # no limit yet
    keep = ctypes.PyDLL(None)  # its calls keep the GIL
    told, ms = None, 50
    while told is None:
        watch.tick(5, 20_000_000)
        watch.step(5)
        keep.usleep(ms * 1000)
        told = watch.tick(6, 0)
        ms = min(2 * ms, 900)  # a machine without a core for the watch needs longer
    assert told == (5, tmp_path / "kept" / "step-000000005-hang")
    assert "test_the_watch_tells" in (told[1] / "stacks.txt").read_text()
    assert watch.tick(7, 0) is None


def test_stacks_of_this_process_have_python_and_native_frames():
    text = _trace.thread_stacks()
    assert "thread " in text or "cannot be read" in text


def test_an_out_of_memory_error_that_the_program_catches_is_an_incident(tmp_path):
    from firelane._always import run as always_run
    from firelane._auto import Plan

    always = always_run.Always(Plan(output=str(tmp_path / "run"), options={}, quiet=True), 0.5, 64 << 20, tick_s=0.02)
    always.install_hooks()
    try:
        net = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        with pytest.raises(torch.OutOfMemoryError):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    finally:
        always.stop()
        always.patches.remove()
    (incident,) = (tmp_path / "run").glob("kept/*-out-of-memory/incident.txt")
    assert "Tried to allocate 2.00 GiB" in incident.read_text()
    with pytest.raises(torch.OutOfMemoryError):  # nothing of ours is left in it
        raise torch.OutOfMemoryError("again")
    assert "__init__" not in vars(torch.OutOfMemoryError)
