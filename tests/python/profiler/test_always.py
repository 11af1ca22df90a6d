"""Always on: the budget, the ring on disk, what makes an incident, and whole programs with planted ones."""

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from firelane import _trace
from firelane._always import budget, ring, triggers
from firelane._always.budget import Budget
from firelane._always.ring import Ring

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))
needs_command = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")


# -- budget --------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.005, 0.02])
@pytest.mark.parametrize("step_ms, window_ms", [(5, 30), (100, 30), (1000, 400), (20, 2)])
def test_windows_cost_no_more_than_the_budget(share, step_ms, window_ms):
    account = Budget(share, window_ns=50_000_000)
    for number in range(50_000):
        account.add_steps(step_ms * 1_000_000, 5_000, 1)
        if account.draws(number):
            cost = int(window_ms * 1e6 * (1 + (number % 3) / 4))
            account.add_steps(cost, 0, 0)
            account.add_window(cost)
    assert account.spent_share <= share
    is_at_most = account.window_count > 0.95 * 50_000 / 16
    assert is_at_most or account.windows_ns >= 0.3 * share * account.elapsed_ns  # and the budget is used


def test_ranks_with_other_rates_draw_the_same_steps():
    steps = range(200_000)
    drawn = {zeros: {n for n in steps if budget.next_drawn(n, 1, zeros) == n} for zeros in (1, 3, 5)}
    assert drawn[5] < drawn[3] < drawn[1]
    assert abs(len(drawn[3]) / (len(steps) / 16 / 2**3) - 1) < 0.2


def test_steps_that_are_timed_together_do_not_change_where_windows_begin():
    one_by_one = [n for n in range(20_000) if budget.next_drawn(n, 1, 2) == n]
    found, at = [], 0
    while at < 20_000:
        step = budget.next_drawn(at, 300, 2)
        found += [step] if step >= 0 else []
        at = step + 1 if step >= 0 else at + 300
    assert found[: len(one_by_one)] == one_by_one


def test_nothing_is_drawn_before_it_is_paid_for():
    account = Budget(0.01, window_ns=100)
    account.add_steps(9_000, 0, 9)
    assert not account.covers_window() and account.covers_window(credit=1)
    account.add_steps(1_000, 0, 1)
    assert account.covers_window()


# -- the ring ------------------------------------------------------------------------------


def line(number, host_ns=1_000_000):
    return f"{number},1,1,{host_ns},-1,unrecorded,900000,0,0,0,1000,-1\n"


def test_the_folder_stays_within_its_limit_over_100_000_steps(tmp_path):
    keep = 1 << 20
    ours = Ring(tmp_path / "run", keep)
    for number in range(100_000):
        ours.add_line(line(number))
        if number % 64 == 0:
            ours.flush()
        if number % 2_000 == 0:
            ours.make_room(20_000)
            ours.window_path(number).write_bytes(b"x" * 20_000)
            if number % 10_000 == 0:
                ours.keep(number, "slow", "slow", ours.newest_windows(2))
            assert ours.used_bytes() <= keep
    ours.flush()
    numbers = [int(text.split(",")[0]) for path in ours._logs() for text in path.read_text().splitlines()[1:]]
    assert numbers[-1] == 99_999 and numbers == list(range(numbers[0], 100_000))
    assert ours.window_path(98_000).exists() and not ours.window_path(0).exists()
    assert ours.errors == 0 and ours.dropped_lines == 0


def test_windows_that_go_leave_a_summary(tmp_path):
    ours = Ring(tmp_path / "run", 1 << 20, lambda path: json.dumps({"window": path.name}))
    ours.window_path(1).write_bytes(b"x" * 900_000)
    ours.make_room(500_000)
    assert (tmp_path / "run/summaries.jsonl").read_text() == '{"window": "step-000000001.lane"}\n'


def test_a_full_disk_is_counted_and_the_log_goes_on_afterwards(tmp_path, monkeypatch):
    ours = Ring(tmp_path / "run", 1 << 20)
    write = os.write

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ring.os, "write", full)
    for number in range(40):
        ours.add_line(line(number))
    ours.flush()
    assert ours.errors == 1
    monkeypatch.setattr(ring.os, "write", write)
    ours.flush()
    assert "step 39: 1.0 ms" in _trace.why(str(tmp_path / "run"), 39)


# -- triggers ------------------------------------------------------------------------------


def test_a_step_is_slow_against_its_own_history():
    slow = triggers.SlowSteps()
    assert not any(slow.is_slow(100 + i % 7) for i in range(200))
    assert not slow.is_slow(140) and slow.is_slow(200)
    steady = [slow.is_slow(300) for _ in range(400)]  # the program has become slower: that is usual then
    assert steady[0] and not steady[-1]


def test_a_program_that_varies_has_a_wider_limit():
    slow = triggers.SlowSteps()
    assert not any(slow.is_slow(100 + 37 * (i * i % 11)) for i in range(200))
    assert not slow.is_slow(600) and slow.is_slow(5000)


def test_a_hang_is_told_once_per_step():
    hang = triggers.Hang(factor=20, least_ns=1000)
    assert not hang.hangs(7, since_ns=1999, usual_ns=100)
    assert hang.hangs(7, since_ns=2001, usual_ns=100) and not hang.hangs(7, since_ns=9999, usual_ns=100)
    assert hang.hangs(8, since_ns=2001, usual_ns=100)


def test_memory_that_only_grows_is_told_and_a_plateau_is_not():
    growth = triggers.Growth(samples=40, least_bytes=100)
    told = [growth.grows(1000 + 10 * i) for i in range(100)]
    assert [x for x in told if x] == [(1000, 1390)]
    growth = triggers.Growth(samples=40, least_bytes=100)
    assert not any(growth.grows(1000 + 500 * (i % 5)) for i in range(200))


def test_a_leak_too_slow_for_minutes_is_told_after_hours_and_a_program_that_filled_its_caches_is_not():
    growth = triggers.Growth()
    gib = 1 << 30
    # 40 MiB an hour in 10 GiB: two minutes of it are 1.3 MiB.
    told = [(second, x) for second in range(48 * 3600) if (x := growth.grows(10 * gib + second * (40 << 20) // 3600))]
    assert len(told) == 1
    assert told[0][0] > 24 * 3600 and told[0][1][1] - told[0][1][0] >= gib
    growth = triggers.Growth()
    assert not any(growth.grows(gib + min(second, 60) * (gib // 60)) for second in range(24 * 3600))


# -- programs ------------------------------------------------------------------------------

# What is planted takes up most of its step and several times what makes a step slow, however slow this machine's steps
# are; what is waited for is the event.
INCIDENTS = """
import gc, json, sys, time, torch
from pathlib import Path
from firelane._always import run
from firelane._always.triggers import Growth, Hang
from firelane._auto import Plan

class Data(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 240
    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.ones(4)

always = run.Always(Plan(output=sys.argv[1], options={}), 0.5, 64 << 20, tick_s=0.02, quiet_s=0, most_incidents=1000,
                    growth=Growth(samples=64, least_bytes=16 << 20))
always.install_hooks()
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
garbage, leak = [[i] for i in range(200_000)], []
slow_batches = iter(torch.utils.data.DataLoader(Data(0.05)))

def plant(call, step_began):
    spent = 0
    while spent < 6e-9 * always.slow.limit_ns or spent < 3 * (time.perf_counter() - step_began - spent):
        began = time.perf_counter()
        call()
        spent += time.perf_counter() - began

def stuck_here():
    always.hang = Hang(factor=20, least_ns=400_000_000)  # from here on: a step may be slow, this one hangs
    while not list(Path(sys.argv[1]).glob("kept/*-hang/stacks.txt")):
        time.sleep(0.01)
    always.hang = Hang()

began = time.perf_counter()
for step, batch in enumerate(torch.utils.data.DataLoader(Data(0))):
    net(batch).sum().backward()
    time.sleep(0.004)
    if step == 80:
        plant(gc.collect, began)
    if step == 120:
        plant(lambda: next(slow_batches), began)
    if step == 160:
        plant(lambda: time.sleep(0.05), began)
    if step == 200:
        stuck_here()
    optimizer.step()
    began = time.perf_counter()
looked_at = 0
while "memory" not in always.last_incident:
    if always.last_sample_s != looked_at:
        looked_at = always.last_sample_s
        leak.append(bytearray(b"x" * (2 << 20)))
    net(torch.ones(1, 4)).sum().backward()
    time.sleep(0.004)
    optimizer.step()
always.stop()
print(json.dumps(always.account()))
"""


def run_program(folder, program, *arguments, command=(sys.executable,)):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"}
    return subprocess.run(
        [*command, str(path), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def kept(run, step, kind):
    """Steps are counted by the optimizer, whose first one ends step 0."""
    found = [path for path in sorted((run / "kept").iterdir()) if path.name == f"step-{step:09}-{kind}"]
    assert found, f"no {kind} at {step} among {[path.name for path in (run / 'kept').iterdir()]}"
    return found[0]


def test_planted_incidents_are_kept_and_named(tmp_path):
    run = tmp_path / "run"
    done = run_program(tmp_path, INCIDENTS, str(run))
    assert done.returncode == 0, done.stderr
    assert "x, garbage collection" in (kept(run, 80, "slow") / "incident.txt").read_text()
    assert "x, waiting for input" in (kept(run, 120, "slow") / "incident.txt").read_text()
    assert "x, the training thread was not running" in (kept(run, 160, "slow") / "incident.txt").read_text()
    hang = kept(run, 200, "hang")
    assert "no step for" in (hang / "incident.txt").read_text() and "stuck_here" in (hang / "stacks.txt").read_text()
    memory = [path for path in (run / "kept").iterdir() if path.name.endswith("-memory")]
    assert memory and "memory grows" in (memory[0] / "incident.txt").read_text()
    # The steps after an incident are recorded, and judged.
    assert any((path / "after.lane").exists() and (path / "verdict.txt").exists() for path in (run / "kept").iterdir())
    assert "x, garbage collection" in _trace.why(str(run), 80)
    account = json.loads(done.stdout)
    assert account["steps"] >= 235 and account["windows"] >= 1 and account["write_errors"] == 0


SLOW_NOW_AND_THEN = """
import json, sys, time, torch
from firelane._always import run
from firelane._auto import Plan

always = run.Always(Plan(output=sys.argv[1], options={}), 0.005, 64 << 20)
always.install_hooks()
for step in range(6000):
    if step % 30 == 0:
        time.sleep(0.003)
    always.step()
always.stop()
print(json.dumps(always.account()))
"""


def test_short_steps_are_timed_together_also_where_slow_ones_are_frequent(tmp_path):
    done = run_program(tmp_path, SLOW_NOW_AND_THEN, str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps_a_line"] > 1


LOOP = """
import os, quick_torch, sys, time, torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    net(torch.ones(2, 4)).sum().backward()
    time.sleep(0.003)
    optimizer.step()
    exec(sys.argv[2])
"""


@needs_command
def test_a_killed_program_leaves_a_readable_run(tmp_path):
    command = (FIRELANE, "record", "--always", "--budget", "20%", "-o", "run", "--", sys.executable)
    kill = """
log = "run/steps-000001.csv"
if step > 400 and step % 20 == 0 and os.path.exists(log) and '\\n300,' in open(log).read():
    os.kill(os.getpid(), 9)"""
    done = run_program(tmp_path, LOOP, "1000000", kill, command=command)
    assert done.returncode == -signal.SIGKILL
    assert "usually" in _trace.why(str(tmp_path / "run"), 300)
    assert json.loads((tmp_path / "run/account.json").read_text())["budget"] == 0.2
    for window in (tmp_path / "run/windows").glob("*.lane"):
        assert _trace.open(window).info["step_count"] >= 0


@needs_command
def test_a_request_keeps_what_is_there_and_records_the_next_steps(tmp_path):
    ask = f"""
if step == 300:
    import subprocess
    subprocess.run([{FIRELANE!r}, "trigger", str(os.getpid()), "--reason", "loss is odd"], check=True)
if step > 300 and step % 20 == 0:
    from pathlib import Path
    if list(Path("my run/kept").glob("*-trigger/after.lane")):
        sys.exit(0)
"""
    command = (FIRELANE, "record", "--always", "--budget", "50%", "-o", "my run", "--", sys.executable)
    done = run_program(tmp_path, LOOP, "1000000", ask, command=command)
    assert done.returncode == 0 and "asked; the next steps are recorded into" in done.stdout
    incidents = list((tmp_path / "my run/kept").glob("*-trigger"))
    assert len(incidents) == 1 and "loss is odd" in (incidents[0] / "incident.txt").read_text()
    assert (incidents[0] / "after.lane").exists()
    assert "windows recorded for" in done.stderr and "next: firelane why 'my run'\n" in done.stderr
    assert f"then: firelane why '{tmp_path.resolve() / 'my run'}'\n" in done.stdout


@needs_command
def test_forked_children_do_not_write_into_their_parents_run(tmp_path):
    fork = """
if step == 100:
    child = os.fork()
    if child == 0:
        for _ in range(200):
            net(torch.ones(2, 4)).sum()
            optimizer.step()
        os._exit(0)
    os.waitpid(child, 0)
"""
    command = (FIRELANE, "record", "--always", "-o", "run", "--", sys.executable)
    done = run_program(tmp_path, LOOP, "400", fork, command=command)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "run/steps-000001.csv").read_text()
    numbers = [int(row.split(",")[0]) for row in text.splitlines()[1:]]
    assert numbers == sorted(set(numbers)) and numbers[-1] >= 380


@needs_command
def test_an_uncaught_exception_is_an_incident(tmp_path):
    fail = """
if step == 200:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
"""
    command = (FIRELANE, "record", "--always", "-o", "run", "--", sys.executable)
    done = run_program(tmp_path, LOOP, "400", fail, command=command)
    assert done.returncode == 1
    assert "Tried to allocate" in (kept(tmp_path / "run", 201, "out-of-memory") / "incident.txt").read_text()


@needs_command
def test_wrong_budgets_and_sizes_are_refused(tmp_path):
    for flags in (["--budget", "0%"], ["--budget", "x"], ["--keep", "5"], ["--keep", "2 XB"]):
        done = subprocess.run(
            [FIRELANE, "record", "--always", *flags, "--", "true"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and flags[0] in done.stderr
