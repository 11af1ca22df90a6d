"""`firelane verify FINDING -- COMMAND`: settings that are applied to programs that know nothing about it."""

import json
import re
import sys
from pathlib import Path

import pytest

from firelane import _verify
from test_record_command import FIRELANE, LOOP, ROOT, firelane_command

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

# Each process has a clock of its own that only its own waiting advances: 5 ms a sample, 1 ms for the rest of a step.
# What is measured does not depend on the machine.
SLOW_LOADER = """
import quick_torch, time, torch
from torch.utils.data import DataLoader, Dataset

now_ns = 0
time.perf_counter_ns = lambda: now_ns

def wait(ns):
    global now_ns
    now_ns += ns

class Slow(Dataset):
    def __len__(self):
        return 10000
    def __getitem__(self, index):
        wait(5_000_000)
        return torch.ones(4)

def train():
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in DataLoader(Slow(), batch_size=4):
        net(batch).sum().backward()
        wait(1_000_000)
        optimizer.step()
        optimizer.zero_grad()
    raise SystemExit("the program is ended before this")

if __name__ == "__main__":  # Python 3.14's workers import it once more
    train()
"""


def verify(folder, finding, program, *arguments, flags=()):
    (folder / "program.py").write_text(program)
    return firelane_command(folder, "verify", finding, *flags, "--", sys.executable, "program.py", *arguments)


def test_workers_are_given_to_a_slow_loader_and_their_gain_is_measured(tmp_path):
    done = verify(tmp_path, "input-bound", SLOW_LOADER, flags=["--runs", "2", "--steps", "12", "--json"])
    assert done.returncode == 0, done.stderr
    turns = re.findall(r"run (\d) of 2, (\w+)", done.stderr)
    assert turns == [("1", "before"), ("1", "after"), ("2", "before"), ("2", "after")]
    answer = json.loads(done.stdout)
    assert re.match(r"DataLoader\(num_workers=\d+, persistent_workers=True", answer["changes"][0])
    # Four samples, one after another; workers wait for theirs beside the program.
    assert answer["before_ns"] == [21_000_000] * 2 and answer["after_ns"] == [1_000_000] * 2
    assert answer["saved_ns"] == 20_000_000
    assert answer["outcome"] == "inconclusive"  # two runs a side


def test_a_program_that_ends_before_is_timed_as_far_as_it_goes_and_a_person_reads_what_it_took(tmp_path):
    done = verify(tmp_path, "gc-pauses", LOOP, "9", flags=["--runs", "1", "--steps", "100"])
    assert done.returncode == 0 and "over 4 steps" in done.stderr, done.stderr
    assert done.stdout.startswith("with gc.freeze(); gc.disable()\n  before ")
    assert "noise" in done.stdout


COLLECTING = """
import quick_torch, gc, time, torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
collections = 0

def count(phase, info):
    global collections
    collections += phase == "stop"

gc.callbacks.append(count)
step = 0
time.perf_counter_ns = lambda: 1_000_000_000 * collections + 1_000_000 * step
for step in range(1000):
    net(torch.ones(4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
"""


def test_verify_measured_nothing_where_the_program_itself_collects_in_every_step(tmp_path):
    done = verify(tmp_path, "gc-pauses", COLLECTING, flags=["--runs", "1", "--steps", "12", "--json"])
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["changes"] == ["gc.freeze(); gc.disable()", "no gc.collect()"]
    assert answer["before_ns"][0] >= 1_001_000_000 and answer["after_ns"] == [1_000_000]


def test_a_finding_that_is_no_setting_is_refused_with_the_change_to_make(tmp_path):
    done = verify(tmp_path, "host-sync", LOOP, "20")
    assert done.returncode == 1 and done.stdout == ""
    assert "host-sync is not a setting but a change to the code" in done.stderr and "loss.item()" in done.stderr
    assert "no such finding" in verify(tmp_path, "beauty", LOOP, "20").stderr


def test_a_setting_that_the_program_has_already_is_told(tmp_path):
    done = verify(tmp_path, "zero-grad-fills", LOOP, "20", flags=["--runs", "1"])
    assert done.returncode == 1 and "changes nothing in this program" in done.stderr


def test_a_program_without_steps_is_told(tmp_path):
    done = verify(tmp_path, "input-bound", "print('nothing to do')", flags=["--runs", "1"])
    assert done.returncode == 1 and "no steps were timed: exit code 0: nothing to do" in done.stderr


def test_command_and_program_know_the_same_settings():
    source = (ROOT / "src" / "cli" / "verb_verify.cc").read_text()
    table = source[source.index("kSettings = {{") : source.index("}};")]
    assert re.findall(r'\{"([a-z-]+)"', table) == sorted(_verify.SETTINGS)
