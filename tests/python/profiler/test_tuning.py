"""`firelane sweep` and `firelane tune`: programs that know nothing about it, at settings that are chosen for them."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from test_record_command import FIRELANE, firelane_command
from test_verify import SLOW_LOADER

pytestmark = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")

BATCHES = """
import os, quick_torch, sys, time, torch
batch = int(sys.argv[sys.argv.index("--batch") + 1])
open("starts.txt", "a").write(f"{batch} {os.environ.get('MODE')}\\n")
if batch > 16:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
while True:  # ended from outside when enough is known
    time.sleep(0.002)
    net(torch.ones(batch, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def sweep(folder, *flags):
    (folder / "program.py").write_text(BATCHES)
    words = ["sweep", "--steps", "4", "--recorded", "1", *flags]
    return firelane_command(folder, *words, "--", sys.executable, "program.py", "--batch", "1")


def test_a_sweep_has_a_row_a_point_and_goes_on_where_it_was(tmp_path):
    done = sweep(tmp_path, "--var", "batch=--batch:4,64", "--var", "mode=env:MODE:a", "--json")
    assert done.returncode == 0, done.stderr
    small, large = json.loads(done.stdout)["points"]
    assert (small["batch"], small["mode"], small["samples"], small["mark"]) == ("4", "a", 4, "best")
    assert small["step_ns"] >= 2_000_000 and small["peak_bytes"] > 0
    assert large["failure"] == "out of memory" and large["step_ns"] is None
    assert ElementTree.parse(tmp_path / "firelane-sweep" / "sweep.svg").getroot().tag.endswith("svg")
    # One more value: only that one runs.
    again = sweep(tmp_path, "--var", "batch=--batch:4,8,64", "--var", "mode=env:MODE:a")
    assert again.returncode == 0 and "batch=4, mode=a" in again.stderr and "measured before" in again.stderr
    assert (tmp_path / "starts.txt").read_text().split("\n")[:-1] == ["4 a", "64 a", "8 a"]
    # Another command's points are not mixed with these.
    other = firelane_command(tmp_path, "sweep", "--var", "x=--x:1", "--", sys.executable, "other.py")
    assert other.returncode == 1 and "holds the points of another command" in other.stderr


def test_tune_gives_workers_to_a_slow_loader_and_proves_the_gain(tmp_path):
    (tmp_path / "program.py").write_text(SLOW_LOADER)
    words = ["tune", "--steps", "10", "--runs", "1", "--max-workers", "2", "--json"]
    done = firelane_command(tmp_path, *words, "--", sys.executable, "program.py")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["found"] and re.match(r"DataLoader\(num_workers=[12], persistent_workers=True", answer["changes"][0])
    assert answer["trials"][0]["settings"] == {} and answer["trials"][0]["wait_ns"] == 20_000_000
    assert (answer["before_ns"], answer["after_ns"], answer["saved_ns"]) == ([21_000_000], [1_000_000], 20_000_000)


def test_a_program_that_does_not_wait_for_input_is_left_alone(tmp_path):
    (tmp_path / "program.py").write_text(BATCHES)
    done = firelane_command(tmp_path, "tune", "--steps", "5", "--", sys.executable, "program.py", "--batch", "1")
    assert done.returncode == 0, done.stderr
    assert "left alone: loading: the program has no DataLoader" in done.stdout
    assert done.stdout.endswith("nothing that was tried is faster than the unchanged program\n")
