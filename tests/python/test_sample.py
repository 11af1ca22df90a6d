"""`firelane sample`: stacks of programs, read from outside, for each version of Python that is installed here."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import firelane

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

# A thread that waits, a generator, a method with a name that is not ASCII, and a main thread that works.
PROGRAM = """
import sys
import threading


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
            yield 0


threading.Thread(target=waits, args=(threading.Event(),), daemon=True).start()
Work().größe(3)
"""


def line_of(text):
    """Of the program, as Python counts."""
    (number,) = (i for i, line in enumerate(PROGRAM.splitlines(), 1) if line.strip() == text)
    return number


def pythons():
    """Of each version that can be read, one: this one, and those of pyenv and of the system."""
    found = {f"3.{sys.version_info[1]}": sys.executable}
    for minor in range(10, 14):
        for place in [*Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"), Path(f"/usr/bin/python3.{minor}")]:
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


@pytest.fixture(params=pythons().items(), ids=lambda item: item[0])
def program(request, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    process = subprocess.Popen([request.param[1], "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.folder = tmp_path
    yield process
    process.kill()
    process.communicate()


def test_stacks_have_the_functions_and_lines_that_the_program_is_in(program):
    done = sample("-p", str(program.pid), "--duration", "0.5", "-o", "stacks.txt", cwd=program.folder)
    assert done.returncode == 0, done.stderr
    folder = f"{program.folder.resolve()}/"  # scripts have their whole path
    stacks = [
        line.rpartition(" ")[0].split(";")[1:]
        for line in (program.folder / "stacks.txt").read_text().replace(folder, "").splitlines()
    ]
    has_qualified_names = any("Work." in frame for stack in stacks for frame in stack)  # from 3.11 on
    name = "Work.größe" if has_qualified_names else "größe"
    recursion = f"{name} (program.py:{line_of('return self.größe(depth - 1)')})"
    sums = f"{name} (program.py:{line_of('return sum(self.numbers())')})"
    main = f"<module> (program.py:{line_of('Work().größe(3)')})"
    numbers = f"{name.replace('größe', 'numbers')} (program.py"
    working = [stack for stack in stacks if stack[0] == main]
    assert working and all(stack[1:5] == [recursion] * 3 + [sums] for stack in working if len(stack) > 4)
    assert any(stack[5].startswith(numbers) for stack in working if len(stack) > 5)
    waiting = [stack for stack in stacks if any("waits (program.py" in frame for frame in stack)]
    assert any(
        stack[-1] == "[waiting]" and f"waits (program.py:{line_of('event.wait()')})" in stack for stack in waiting
    )


def test_the_file_opens_in_firelane_and_the_table_names_the_hot_function(program):
    done = sample("-p", str(program.pid), "--duration", "0.5", "--json", "-o", "x.json", cwd=program.folder)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    rows = {row["function"].rpartition(".")[2]: row for row in answer["functions"]}
    assert rows["numbers"]["self_cpu_percent"] > 0
    assert rows["größe"]["total_cpu_percent"] > 50 > rows["waits"]["total_cpu_percent"]
    assert max(row["gil_percent"] for row in answer["threads"]) > 50
    trace = firelane.open(program.folder / "x.json")
    assert any("numbers" in row["name"] for row in trace.host_slices)
    assert program.poll() is None  # it runs on


def test_a_command_is_sampled_until_its_end_and_its_exit_code_is_ours(tmp_path):
    work = """
import sys, time
def spin():
    end = time.time() + 0.5
    while time.time() < end: pass
spin()
sys.exit(7)"""
    done = sample("--rate", "200", "--", sys.executable, "-c", work, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert re.search(r"spin +<string>:5", done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == []


def has_begun(command):
    """Whether it reads the program's threads."""
    for file in Path(f"/proc/{command.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it opens and closes others before
            if "schedstat" in str(file.readlink()):
                return True
    return False


def test_ctrl_c_ends_sampling_and_the_answer_comes(program):
    command = subprocess.Popen(
        [FIRELANE, "sample", "-p", str(program.pid), "-o", "x.txt"],
        cwd=program.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not has_begun(command):
        assert command.poll() is None
    command.send_signal(signal.SIGINT)
    output, _ = command.communicate(timeout=100)
    assert command.returncode == 0 and "Functions" in output and (program.folder / "x.txt").stat().st_size > 0


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
    import threading, time
    end = time.time() + 1.5
    while time.time() < end:
        threads = [threading.Thread(target=time.sleep, args=(0.001 * (i % 50),)) for i in range(1000)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    done = sample("--rate", "1000", "--json", "--", sys.executable, "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["looks"] > 0


def test_a_function_at_the_place_of_one_that_is_gone_has_its_own_name(tmp_path):
    text = """
    import time
    for i in range(20):
        body = f"def f{i}():\\n    end = time.time() + 0.05\\n    while time.time() < end: pass\\nf{i}()"
        exec(compile(body, f"file{i}.py", "exec"), {"time": time})
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    done = sample("--rate", "500", "--json", "--", sys.executable, "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {row["function"]: row["place"] for row in json.loads(done.stdout)["functions"]}
    assert sum(place.startswith(f"file{name[1:]}.py:3") for name, place in names.items()) > 10
