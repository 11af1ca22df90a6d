"""Always-on recordings of programs that hang with the GIL held, and of those that catch an out-of-memory error."""

import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from firelane import _trace
from firelane._always import gil_watch

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]

# Steps with a call into C that keeps the GIL (PyDLL does, CDLL would release it), each for longer than the one before:
# on a machine that pauses, a thread of Python's may be the first to see one.
HANGS = """
import ctypes, sys, time
from always_program import train
from firelane._always.triggers import Hang

always, optimizer = train(sys.argv[1], 0.002, most_incidents=1_000_000)
always.hang = Hang(factor=0, least_ns=400_000_000)  # from here on: a step may be slow, those below hang

def keeps_the_gil(seconds):
    ctypes.PyDLL(None).sleep(seconds)

seconds = 2
while True:
    while always.gil_watch._limit_ms != 400:
        time.sleep(0.01)
    optimizer.step()
    keeps_the_gil(seconds)
    seconds *= 2
"""


def test_a_hang_with_the_gil_held_leaves_the_stacks_of_all_threads(tmp_path):
    (tmp_path / "program.py").write_text(HANGS)
    run = tmp_path / "run"
    program = subprocess.Popen(
        [sys.executable, "program.py", str(run)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"},
    )
    try:
        found = []
        while not found:
            assert program.poll() is None
            time.sleep(0.05)
            found = [
                path
                for path in run.glob("kept/*-hang/incident.txt")  # stacks.txt is there before it
                if "keeps the GIL" in path.read_text() and "keeps_the_gil" in path.with_name("stacks.txt").read_text()
            ]
        incident = found[0].read_text()
        text = found[0].with_name("stacks.txt").read_text()
    finally:
        program.kill()
        program.wait()
    assert incident.startswith("hang: no step for at least 0.4 s after step ")
    main = next(part for part in text.split("\n\n") if "keeps_the_gil" in part)
    assert "holds the GIL" in main.splitlines()[0] and "program.py:" in main
    assert "no step for" in _trace.why(str(run), int(found[0].parent.name.split("-")[1]))


def hold_the_gil_until_told(watch):
    keep = ctypes.PyDLL(None)  # its calls keep the GIL
    told, ms = None, 50
    while told is None:
        watch.tick(5, 20_000_000)
        watch.step(5)
        keep.usleep(ms * 1000)
        told = watch.tick(6, 0)
        ms = min(2 * ms, 900)  # a machine without a core for the watch needs longer
    return told


def test_the_watch_tells_once_of_a_gil_that_is_kept(tmp_path):
    watch = gil_watch.GilWatch(tmp_path / "kept")
    assert watch.tick(3, 0) is None  # no limit yet
    told = hold_the_gil_until_told(watch)
    assert told == (5, tmp_path / "kept" / "step-000000005-hang")
    assert watch.tick(7, 0) is None
    while not (told[1] / "incident.txt").exists():
        time.sleep(0.01)
    assert "test_the_watch_tells" in (told[1] / "stacks.txt").read_text()
    watch.stop()


def test_hangs_with_the_gil_held_are_counted_and_kept_apart_as_others(tmp_path):
    from firelane._always import run as always_run
    from firelane._auto import Plan

    class Watch:
        def __init__(self):
            self.ticks, self.written = [], None

        def tick(self, step, limit_ns, *, is_told):
            self.ticks.append((step, limit_ns / 1e9, is_told))
            written, self.written = self.written, None
            return written

    always = always_run.Always(Plan(output=str(tmp_path / "run"), options={}), quiet_s=3600, most_incidents=2)
    always.gil_watch = watch = Watch()
    always.step_count = 7
    gil_watch.tick(always, 30_000_000_000)
    assert watch.ticks[-1] == (7, 30.0, False)
    watch.written = (7, tmp_path)
    gil_watch.tick(always, 30_000_000_000)
    assert always.incident_count == 1 and always.outside.incidents["hang"] == 1
    gil_watch.tick(always, 30_000_000_000)
    step, limit_s, is_told = watch.ticks[-1]
    assert step == 7 and is_told and 30 < limit_s <= 3600  # nothing is written over what is there
    always._incident("hang", 8, "hang: too soon")
    assert always.incident_count == 1
    always._incident("trigger", 8, "trigger: x")
    gil_watch.tick(always, 30_000_000_000)
    assert watch.ticks[-1][1] == 0  # as many as are allowed


def waits_for(event):
    event.wait()


ACQUIRES = re.compile("acquire_lock|_PyMutex_LockTimed")  # Python 3.14's locks are others


def test_stacks_of_this_process_have_python_and_native_frames():
    event = threading.Event()
    thread = threading.Thread(target=waits_for, args=(event,))
    thread.start()
    try:
        while not event._cond._waiters:
            time.sleep(0.001)
        try:
            is_told_where = Path(f"/proc/self/task/{thread.native_id}/syscall").read_text() != ""
        except OSError:  # this system does not say where threads wait
            is_told_where = False
        while True:  # it is on its way into the lock, where it stays
            text = _trace.thread_stacks()
            if not text.startswith("thread "):
                pytest.skip(text)  # this process may not be read
            parts = [part for part in text.split("\n\n") if f" {thread.native_id}, " in part.partition("\n")[0]]
            has_native = "libdw" not in text and os.uname().machine == "x86_64" and is_told_where
            if parts and "waits_for" in parts[0] and (ACQUIRES.search(parts[0]) or not has_native):
                break
    finally:
        event.set()
        thread.join()
    names = [line.split(" (")[0].strip() for line in parts[0].splitlines()[1:]]
    assert "waits_for" in names and f"({__file__}:" in parts[0]
    if has_native:
        assert any(ACQUIRES.search(name) for name in names[: names.index("waits_for")]), parts[0]


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
