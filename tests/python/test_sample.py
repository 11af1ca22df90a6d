"""`firelane sample`: stacks of programs, read from outside, for each version of Python that is installed here."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import firelane
from looks import has_begun, looks_by

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

# A thread that waits, and a main thread that never leaves a generator, called by a method whose name is not ASCII.
# Each thread is where it stays when "ready" comes, so that every look sees the same.
PROGRAM = """
import sys
import threading
import time


def waits(event):
    event.wait()


class Work:
    def größe(self, depth):
        if depth:
            return self.größe(depth - 1)
        return sum(self.numbers())

    def numbers(self):
        print("ready", flush=True)
        while True:
            pass
        yield 0


event = threading.Event()
thread = threading.Thread(target=waits, args=(event,), daemon=True)
thread.start()
while not event._cond._waiters:
    time.sleep(0.001)
Work().größe(3)
"""

# Most of its time goes into entering and leaving the generator.
SUSPENDING = """
def numbers():
    print("ready", flush=True)
    while True:
        yield 0


def main():
    sum(numbers())


main()
"""


def line_of(text):
    """Of the program, as Python counts."""
    (number,) = (i for i, line in enumerate(PROGRAM.splitlines(), 1) if line.strip() == text)
    return number


def pythons():
    """Of each version that can be read, one: this one, and those of pyenv and of the system."""
    found = {f"3.{sys.version_info[1]}": sys.executable}
    for minor in range(10, 15):
        on_path = Path(shutil.which(f"python3.{minor}") or "/usr/bin/none")
        for place in [*Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"), on_path]:
            if place.exists():
                found.setdefault(f"3.{minor}", str(place))
    return found


def sample(*words, cwd, **options):
    done = subprocess.run(
        [FIRELANE, "sample", *words], cwd=cwd, capture_output=True, text=True, timeout=200, check=False, **options
    )
    if "ptrace_scope" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(f"this machine forbids it: {done.stderr}")
    return done


@contextlib.contextmanager
def running(python, text, folder):
    (folder / "program.py").write_text(text)
    process = subprocess.Popen([python, "program.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        process.folder = folder
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(params=pythons().items(), ids=lambda item: item[0])
def python(request):
    return request.param[1]


@pytest.fixture
def program(python, tmp_path):
    with running(python, PROGRAM, tmp_path) as process:
        yield process


@contextlib.contextmanager
def sampling(program, *words):
    """Samples while the block runs, which gets the sampler; then Ctrl-C. Its `output` is what it printed."""
    command = [FIRELANE, "sample", "-p", str(program.pid), *words]
    sampler = subprocess.Popen(command, cwd=program.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while sampler.poll() is None and not has_begun(sampler.pid):
            time.sleep(0.005)
        if sampler.poll() is None:
            yield sampler
    finally:
        if sampler.poll() is None:
            sampler.send_signal(signal.SIGINT)
        sampler.output, errors = sampler.communicate(timeout=200)
    if "ptrace_scope" in errors or "not permitted" in errors:
        pytest.skip(f"this machine forbids it: {errors}")
    assert sampler.returncode == 0, errors


def wait_for_looks(sampler, count):
    before = looks_by(sampler.pid)
    while looks_by(sampler.pid) < before + count:
        assert sampler.poll() is None
        time.sleep(0.005)


def stacks_in(file, folder):
    """Without the thread; scripts have their whole path."""
    lines = file.read_text().replace(f"{folder.resolve()}/", "").splitlines()
    return [line.rpartition(" ")[0].split(";")[1:] for line in lines]


def test_stacks_have_the_functions_and_lines_that_the_program_is_in(program):
    done = sample("-p", str(program.pid), "--duration", "0.1", "-o", "my stacks.txt", cwd=program.folder)
    assert done.returncode == 0, done.stderr
    assert "firelane view 'my stacks.txt' shows it as a flame graph" in done.stdout
    stacks = stacks_in(program.folder / "my stacks.txt", program.folder)
    has_qualified_names = any("Work." in frame for stack in stacks for frame in stack)  # from 3.11 on
    name = "Work.größe" if has_qualified_names else "größe"
    recursion = f"{name} (program.py:{line_of('return self.größe(depth - 1)')})"
    sums = f"{name} (program.py:{line_of('return sum(self.numbers())')})"
    main = f"<module> (program.py:{line_of('Work().größe(3)')})"
    numbers = f"{name.replace('größe', 'numbers')} (program.py"
    working = [stack for stack in stacks if stack[0] == main]
    assert working
    for stack in working:
        assert stack[1:5] == [recursion] * 3 + [sums] and stack[5].startswith(numbers), stack
    waiting = [stack for stack in stacks if stack not in working]
    assert any(stack[-1] == "[waiting]" for stack in waiting)
    for stack in waiting:
        assert f"waits (program.py:{line_of('event.wait()')})" in stack


def test_a_generator_that_is_suspended_while_it_is_read_keeps_its_callers(python, tmp_path):
    with (
        running(python, SUSPENDING, tmp_path) as program,
        sampling(program, "--rate", "2000", "-o", "x.txt") as sampler,
    ):
        wait_for_looks(sampler, 300)
    for stack in stacks_in(tmp_path / "x.txt", tmp_path):
        assert [frame.partition(" ")[0] for frame in stack[:2]] == ["<module>", "main"]


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def let_run(process, seconds):
    """Until it has been on a core for so long."""
    before = cpu_seconds(process)
    while cpu_seconds(process) < before + seconds:
        time.sleep(0.005)


def test_the_file_opens_in_firelane_and_the_table_names_the_hot_function(program):
    with sampling(program, "--json", "-o", "x.json") as sampler:
        let_run(program, 0.1)
        wait_for_looks(sampler, 5)
    answer = json.loads(sampler.output)
    rows = {row["function"].rpartition(".")[2]: row for row in answer["functions"]}
    assert rows["numbers"]["self_cpu_percent"] > 0
    assert rows["größe"]["total_cpu_percent"] > 50 > rows["waits"]["total_cpu_percent"]
    assert max(row["gil_percent"] for row in answer["threads"]) > 50
    trace = firelane.open(program.folder / "x.json")
    assert any("numbers" in row["name"] for row in trace.host_slices)
    assert program.poll() is None  # it runs on


def test_a_command_is_sampled_until_its_end_and_its_exit_code_is_ours(tmp_path):
    text = """
    import os, sys
    from looks import has_begun, looks_by
    sampler = os.getppid()
    def spin(end):
        while looks_by(sampler) < end: pass
    while not has_begun(sampler): pass
    spin(looks_by(sampler) + 20)
    sys.exit(7)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    done = sample("--rate", "200", "--", sys.executable, "program.py", cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert re.search(r"spin .*program.py:6", done.stdout), done.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["program.py"]


def test_ctrl_c_ends_sampling_and_the_answer_comes(program):
    with sampling(program, "-o", "x.txt") as sampler:
        pass
    assert "Functions" in sampler.output and (program.folder / "x.txt").stat().st_size > 0


def test_wrong_use_and_programs_that_are_no_python_are_refused(tmp_path):
    assert sample(cwd=tmp_path).returncode == 2
    assert sample("-p", "1", "--", "true", cwd=tmp_path).returncode == 2
    assert "no such process" in sample("-p", str(1 << 29), cwd=tmp_path).stderr
    done = sample("--", "true", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    (tmp_path / "old.json").write_text("precious")
    done = sample("-o", "old.json", "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert done.returncode == 1 and "old.json exists" in done.stderr and done.stdout == ""


def test_a_thousand_threads_that_come_and_go_do_not_disturb_it(tmp_path):
    text = """
    import os, threading, time
    from looks import has_begun, looks_by
    sampler = os.getppid()
    while not has_begun(sampler): pass
    end = looks_by(sampler) + 10
    while looks_by(sampler) < end:
        threads = [threading.Thread(target=time.sleep, args=(0.001 * (i % 50),)) for i in range(1000)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    done = sample("--rate", "1000", "--json", "--", sys.executable, "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["looks"] >= 10


def test_a_function_at_the_place_of_one_that_is_gone_has_its_own_name(tmp_path):
    # A code object that is known is compared again after 32 looks.
    text = """
    import os
    from looks import has_begun, looks_by
    sampler = os.getppid()
    while not has_begun(sampler): pass
    for i in range(10):
        body = f"def f{i}(end):\\n    while looks_by(sampler) < end: pass\\nf{i}(looks_by(sampler) + 40)"
        exec(compile(body, f"file{i}.py", "exec"), {"looks_by": looks_by, "sampler": sampler})
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    done = sample("--rate", "1000", "--json", "--", sys.executable, "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {row["function"]: row["place"] for row in json.loads(done.stdout)["functions"]}
    assert [names.get(f"f{i}") for i in range(10)] == [f"file{i}.py:2" for i in range(10)]
