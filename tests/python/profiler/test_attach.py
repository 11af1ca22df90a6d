"""`firelane attach PID`: a program that is already running is recorded, and goes on as if nothing had been."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import firelane
from firelane import _attach

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

TRAINING = (ROOT / "tests" / "python" / "attached_training.py").read_text()

IDLE = """
import quick_torch, time, torch
from pathlib import Path
print("ready", flush=True)
while not Path("stop").exists():
    time.sleep(0.01)
"""


class Program:
    def __init__(self, folder, text, *arguments, command=()):
        self.folder = folder
        (folder / "program.py").write_text(textwrap.dedent(text))
        self.process = subprocess.Popen(
            [*command, sys.executable, "program.py", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def stop(self):
        """What it has printed."""
        (self.folder / "stop").touch()
        output, errors = self.process.communicate(timeout=300)
        return output, errors

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate()


def start_attach(program, *flags):
    pid = str(getattr(program, "process", program).pid)
    return subprocess.Popen(
        [FIRELANE, "attach", pid, *flags], cwd=program.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(command):
    command.output, command.errors = command.communicate(timeout=300)
    if "ptrace_scope" in command.errors or "not permitted" in command.errors:
        pytest.skip(f"this machine forbids it: {command.errors}")
    return command


def attach(program, *flags):
    return finish(start_attach(program, *flags))


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    with Program(tmp_path_factory.mktemp("training"), TRAINING, "0") as program:
        yield program


def test_steps_of_a_running_program_are_recorded(training):
    done = attach(training, "--steps", "3", "--shapes", "-o", "step one.lane")
    assert done.returncode == 0, done.errors
    assert "attached to" in done.errors and "Traceback" not in done.errors
    assert "3 steps recorded" in done.output and "next: firelane diagnose 'step one.lane'" in done.output
    assert done.output.endswith("firelane view 'step one.lane'\n")
    trace = firelane.open(training.folder / "step one.lane")
    assert [row["number"] for row in trace.steps] == [4, 5, 6]
    names = [row["name"] for row in trace.host_slices]
    assert names.count("Optimizer.step#AdamW.step") == 3 and "aten::addmm" in names


def test_a_step_ends_after_the_optimizer_and_not_inside_of_it(training):
    done = attach(training, "--steps", "3", "-o", "again.lane")  # the second time in the same program
    assert done.returncode == 0, done.errors
    rows = firelane.open(training.folder / "again.lane").host_slices
    steps = sorted(
        (r["start_ns"], r["start_ns"] + r["duration_ns"]) for r in rows if r["name"].startswith("ProfilerStep")
    )
    inner = sorted(
        (r["start_ns"], r["start_ns"] + r["duration_ns"]) for r in rows if r["name"].startswith("Optimizer.st")
    )
    assert len(steps) == len(inner) == 3
    assert all(a <= c and d <= b for (a, b), (c, d) in zip(steps, inner, strict=True))


def test_of_two_attaches_at_once_one_is_refused(training):
    # The first one waits for more steps than there will be, so that both are there at the same time.
    first = start_attach(training, "--steps", "1000000000", "-o", "first.lane")
    while "attached to" not in (line := first.stderr.readline()):
        if not line:
            finish(first)
            pytest.fail(first.errors)
    second = attach(training, "--steps", "1", "-o", "second.lane")
    assert second.returncode == 1 and "another attach to it is in progress" in second.errors
    assert not (training.folder / "second.lane").exists()
    first.send_signal(signal.SIGINT)  # Ctrl-C: whatever was recorded until then
    finish(first)
    assert first.returncode == (1 if "nothing recorded" in first.errors else 0)
    assert "interrupted" in first.errors


def test_whoever_hears_that_it_is_over_may_attach_again_at_once(monkeypatch):
    said = []
    monkeypatch.setattr(_attach, "_visit", lambda *_: ("done", ""))
    monkeypatch.setattr(_attach, "_send", lambda _, word, text: said.append((word, _attach._visited)))
    _attach._serve(None, "{}")
    assert said == [("done", 0)]


def test_a_file_that_exists_is_not_replaced_unless_asked(training):
    (training.folder / "old.lane").write_text("precious")
    done = attach(training, "-o", "old.lane")
    assert done.returncode == 1 and "old.lane exists; add --force" in done.errors
    done = attach(training, "--steps", "1", "--force", "--quiet", "-o", "old.lane")
    assert done.returncode == 0, done.errors
    assert len(firelane.open(training.folder / "old.lane").steps) == 1


def test_results_are_those_of_an_untouched_run_and_nothing_is_left(training):
    output, errors = training.stop()  # the last of this program's tests
    assert errors == ""
    attached = json.loads(output)
    assert attached["left"] == {}, "something of ours is left in the program"
    with Program(training.folder, TRAINING, str(attached["computed"]["steps"])) as program:
        untouched = json.loads(program.process.communicate(timeout=300)[0])
    assert attached == untouched
    assert not list(training.folder.glob("*.part"))


def test_a_program_without_steps_is_left_alone_after_the_timeout(tmp_path):
    with Program(tmp_path, IDLE) as program:
        done = attach(program, "--timeout", "1", "-o", "run.lane")
        assert done.returncode == 1
        assert done.errors.splitlines()[-1] == (
            f"firelane: {program.process.pid}: nothing recorded: "
            "no step (of an optimizer, a DataLoader or a profiler) in 1 s"
        )
        assert program.stop() == ("", "") and program.process.returncode == 0
    assert not (tmp_path / "run.lane").exists()


def test_a_program_that_dies_meanwhile_is_named(tmp_path):
    with Program(tmp_path, IDLE) as program:
        command = start_attach(program, "-o", "run.lane")
        if "attached to" not in command.stderr.readline():
            finish(command)
            pytest.fail(command.errors)
        program.process.kill()
        finish(command)
        assert command.returncode == 1 and "the program ended before the trace was complete" in command.errors


def test_a_program_that_ends_while_it_is_recorded_leaves_its_trace(tmp_path):
    with Program(tmp_path, TRAINING, "0") as program:
        command = start_attach(program, "--steps", "1000000000", "-o", "run.lane")
        if "attached to" not in command.stderr.readline():
            finish(command)
            pytest.fail(command.errors)
        while not (tmp_path / "run.lane").exists() or (tmp_path / "run.lane").stat().st_size < 100_000:
            assert command.poll() is None
        assert program.stop()[1] == ""
        finish(command)
        assert command.returncode == 0 and "the program ended; recorded until then" in command.errors
    assert len(firelane.open(tmp_path / "run.lane").steps) > 1


def test_training_in_a_thread_while_the_main_thread_waits_is_recorded(tmp_path):
    start = "import threading\nthread = threading.Thread(target=train)\nthread.start()\nthread.join()\n"
    text = "def train():\n" + textwrap.indent(TRAINING, "    ") + "\n" + start
    with Program(tmp_path, text, "0") as program:
        done = attach(program, "--steps", "2", "--quiet", "-o", "run.lane")
        assert done.returncode == 0, done.errors
        program.stop()
    assert len(firelane.open(tmp_path / "run.lane").steps) == 2


def test_a_program_under_firelane_record_is_refused(tmp_path):
    record = [FIRELANE, "record", "--wait", "1000000000", "-o", "own.lane", "--"]
    with Program(tmp_path, TRAINING, "0", command=record) as program:
        done = attach(program, "-o", "run.lane")
        assert done.returncode == 1 and "firelane record is recording it; wait for its trace" in done.errors


class Other:
    """A process that is no training."""

    def __init__(self, folder, *command):
        self.folder = folder
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.communicate(timeout=300)  # they end with their standard input


def test_what_is_no_torch_program_is_refused_untouched(tmp_path):
    with Other(tmp_path, "cat") as other:
        done = attach(other)
        assert done.returncode == 1 and "not a Python 3 program" in done.errors and done.errors.count("\n") == 1
    with Other(tmp_path, sys.executable, "-c", "print(flush=True); input()") as other:
        other.process.stdout.readline()
        done = attach(other)
        assert done.returncode == 1 and "has not imported torch" in done.errors and done.errors.count("\n") == 1
    assert "no such process" in attach(other).errors
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_process_and_a_count_of_no_steps_are_refused(tmp_path):
    with Other(tmp_path, "cat") as other:
        other.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert f"is stopped; kill -CONT {other.process.pid} first" in attach(other).errors
        other.process.send_signal(signal.SIGCONT)
        assert attach(other, "--steps", "0").returncode == 2
