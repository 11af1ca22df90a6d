"""`firelane sample --native` and `--once`: native frames beside those of each Python that is installed here."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_sample import FIRELANE, let_run, python, running, sample

__all__ = ["python"]  # a fixture

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

# Every thread is where it stays when "ready" comes: one waits for an event, a Python function that C calls (a key of
# sorted) waits in read().
WAITING = """
import os
import threading
import time


def waits(event):
    event.wait()


def key(item):
    print("ready", flush=True)
    os.read(reading, 1)


def main():
    sorted([1], key=key)


event = threading.Event()
threading.Thread(target=waits, args=(event,), daemon=True).start()
while not event._cond._waiters:
    time.sleep(0.001)
reading, writing = os.pipe()
main()
"""

# Holds the GIL in C code that never ends: a sum over an endless iterator.
HOLDING = """
import itertools


def main():
    print("ready", flush=True)
    sum(itertools.repeat(0))


main()
"""


def native(*words, cwd):
    done = sample(*words, "--native", cwd=cwd)
    if "libdw" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done


def stacks_in(path):
    """Of collapsed stacks: frames' names, outermost first, by line."""
    return [
        [frame.partition(" (")[0] for frame in line.rpartition(" ")[0].split(";")[1:]]
        for line in path.read_text().splitlines()
    ]


def sampled_at_rest(process):
    """Stacks of a look at which every thread waits: each of ours is on its way into its system call at most."""
    path = process.folder / "x.txt"
    for _ in range(200):
        native("-p", str(process.pid), "--duration", "0.02", "-o", str(path), "--force", cwd=process.folder)
        stacks = stacks_in(path)
        if all(stack[-1] == "[waiting]" and len(stack) > 2 for stack in stacks):
            return stacks
    raise AssertionError(stacks)


def test_threads_that_wait_have_native_frames_inside_and_between_pythons(python, tmp_path):
    with running(python, WAITING, tmp_path) as process:
        stacks = sampled_at_rest(process)
    (main,) = (stack for stack in stacks if "key" in stack)
    # Python frames in their order; C's innermost ones below them, none of the interpreter's own in between.
    assert [name for name in main if name in ("<module>", "main", "key")] == ["<module>", "main", "key"]
    assert main.index("key") == main.index("main") + 1
    inside = main[main.index("key") + 1 : -1]
    assert "read" in inside[-1] and "os_read" in inside, inside
    (other,) = (stack for stack in stacks if "waits" in stack)
    inside = other[other.index("waits") + 1 : -1]
    assert inside[0].endswith("wait") and any("acquire_lock" in name for name in inside), inside


def test_once_says_what_each_thread_does_and_who_holds_the_gil(python, tmp_path):
    with running(python, HOLDING, tmp_path) as process:
        let_run(process, 0.05)  # it may have lost its core as it said that it is ready
        text = native("-p", str(process.pid), "--once", cwd=tmp_path).stdout
        plain = sample("-p", str(process.pid), "--once", cwd=tmp_path).stdout
        assert process.poll() is None
    assert text.startswith("thread python") and "holds the GIL" in text.splitlines()[0]
    assert "main (" in text and "program.py:7)" in text
    assert plain.splitlines()[1:3] == [
        f"  main ({tmp_path / 'program.py'}:7)",
        f"  <module> ({tmp_path / 'program.py'}:10)",
    ]


def test_a_thread_that_runs_has_the_native_frames_that_the_kernel_saw(tmp_path):
    path = tmp_path / "x.txt"
    with running(sys.executable, HOLDING, tmp_path) as process:
        seconds, seen = 0.2, []
        while not seen:  # the kernel takes a sample of it once it has had a core for long enough
            done = native("-p", str(process.pid), "--duration", str(seconds), "-o", str(path), "--force", cwd=tmp_path)
            if "perf_event_open" in done.stdout:
                pytest.skip(done.stdout)
            seen = [stack for stack in stacks_in(path) if "builtin_sum" in stack]
            seconds *= 2
    assert all(stack[:2] == ["<module>", "main"] for stack in seen)


# Its frames are found by the frame pointer, and what it calls saves none.
POINTERS = """
#include <unistd.h>
__attribute__((noinline)) int inner(volatile int *x) { volatile int y[8] = {0}; pause(); return y[1] + *x; }
int outer(void) { volatile int x = 1; return inner(&x) + x; }
"""


def test_a_thread_that_waits_in_code_with_frame_pointers_is_walked_to_its_end(tmp_path):
    compiler = shutil.which("clang-19") or shutil.which("cc")
    if compiler is None or os.uname().machine != "x86_64":
        pytest.skip("needs a C compiler, and x86-64")
    (tmp_path / "pointers.c").write_text(POINTERS)
    words = [compiler, "-O1", "-fno-omit-frame-pointer", "-shared", "-fPIC", "pointers.c", "-o", "pointers.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    text = "import ctypes\nlibrary = ctypes.CDLL('./pointers.so')\nprint('ready', flush=True)\nlibrary.outer()\n"
    with running(sys.executable, text, tmp_path) as process:
        while not Path(f"/proc/{process.pid}/syscall").read_text().startswith("34 "):  # pause
            time.sleep(0.01)
        frames = native("-p", str(process.pid), "--once", cwd=tmp_path).stdout.splitlines()
    names = [line.split(" (")[0].strip() for line in frames if line.startswith("  ")]
    assert names[1:3] == ["inner", "outer"] and names[-1] == "<module>", names


def test_once_needs_a_program_that_runs(tmp_path):
    done = subprocess.run(
        [FIRELANE, "sample", "--once", "--", "true"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "-p PID" in done.stderr
