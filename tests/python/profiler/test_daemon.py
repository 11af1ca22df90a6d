"""firelane daemon and firelane trigger with the real thing: unmodified PyTorch under KINETO_USE_DAEMON=1.

The sockets lie in a folder of their own (KINETO_IPC_SOCKET_DIR), so that no other checkout or daemon is in the way, and
Kineto is told to ask once a second instead of every five."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from firelane import _trace

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
pytestmark = [
    pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build"),
    pytest.mark.skipif(sys.platform != "linux", reason="Kineto's daemon protocol is for Linux"),
]

PROGRAM = """
import sys, torch
print("ready", flush=True)
net = torch.nn.Linear(64, 64)
import select
while not select.select([sys.stdin], [], [], 0.02)[0]:  # until the test closes it
    net(torch.ones(8, 64)).sum().backward()
"""


@pytest.fixture
def place():
    """A folder with a short path, as Unix sockets need it, and the environment that points there."""
    with tempfile.TemporaryDirectory(prefix="fl-") as folder:
        config = Path(folder) / "kineto.conf"
        config.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
        environment = {**os.environ, "KINETO_IPC_SOCKET_DIR": folder, "KINETO_CONFIG": str(config)}
        yield Path(folder), environment


@contextlib.contextmanager
def daemon(environment):
    process = subprocess.Popen([FIRELANE, "daemon"], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert "waiting for programs" in process.stderr.readline()
        yield process
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def program(environment):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "KINETO_USE_DAEMON": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def trigger(environment, *arguments):
    return subprocess.run(
        [FIRELANE, "trigger", *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def trace(environment, *arguments):
    """Until the file is there: Kineto drops a request if the program got no core when its warm-up was to begin."""
    while "not written" in (done := trigger(environment, *arguments, "--force")).stderr:
        pass
    return done


def wait_until_known(environment, *processes):
    """Programs ask once a second, when they run."""
    listed = ""
    while not all(f"{process.pid} " in listed for process in processes):
        time.sleep(0.1)
        assert all(process.poll() is None for process in processes)
        command = [FIRELANE, "daemon", "--list"]
        listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return listed


def test_unmodified_pytorch_is_traced_and_only_the_process_that_is_meant(place):
    folder, environment = place
    with daemon(environment) as first, program(environment) as meant, program(environment) as other:
        wait_until_known(environment, meant, other)
        path, ops = folder / f"step one_{meant.pid}.json", set()
        while not ops:  # Kineto's window is a time, in which the program may get no core
            done = trace(environment, meant.pid, "-o", folder / "step one.json", "--duration-ms", "100", "--shapes")
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith(f"wrote '{path}'; next: firelane diagnose '{path}', firelane view '{path}'")
            assert sorted(file.name for file in folder.glob("*.json")) == [path.name]
            ops = {row["name"] for row in _trace.open(path).host_slices}
        assert any(name.startswith("aten::") for name in ops)
        again = trigger(environment, meant.pid, "-o", folder / "step one.json")
        assert again.returncode == 1 and "exists; add --force" in again.stderr

        # A second daemon is refused; one that was killed leaves its file behind, and the next takes over.
        second = subprocess.run([FIRELANE, "daemon"], env=environment, capture_output=True, text=True, check=False)
        assert second.returncode == 1 and second.stderr.count("\n") == 1
        assert "a daemon answers already" in second.stderr
        first.kill()
        first.wait()
        assert (folder / "dynolog").exists()
        with daemon(environment):
            assert sys.executable in wait_until_known(environment, meant, other)
            done = trace(environment, os.getpid(), "-o", folder / "both.json", "--duration-ms", "50")
            assert done.returncode == 0, done.stderr  # this process is the parent of both
            assert {file.name for file in folder.glob("both_*.json")} == {f"both_{p.pid}.json" for p in (meant, other)}


def test_without_a_daemon_or_with_a_program_that_never_asked_one_line_says_so(place):
    _, environment = place
    done = trigger(environment, os.getpid())
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "start one: firelane daemon" in done.stderr
    with daemon(environment):
        done = trigger(environment, os.getpid())
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and "KINETO_USE_DAEMON=1" in done.stderr
        done = trigger(environment, os.getpid(), "-o", "trace.txt")
        assert done.returncode == 1 and "ends in .json" in done.stderr


def test_the_daemon_ends_by_a_signal_and_leaves_nothing(place):
    folder, environment = place
    for number in (signal.SIGINT, signal.SIGTERM):
        with daemon(environment) as ours:
            ours.send_signal(number)
            assert ours.wait(300) == 0
        assert not (folder / "dynolog").exists()
