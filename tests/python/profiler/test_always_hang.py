"""A program that hangs under an always-on recording: where its threads are, and which collectives it waits in."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from firelane import _trace
from firelane._always import hang

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))


def test_stacks_have_every_thread_with_what_the_kernel_says_of_it():
    entered, leave = threading.Event(), threading.Event()

    def stuck_in_here():
        entered.set()
        leave.wait()

    thread = threading.Thread(target=stuck_in_here, name="loader")
    thread.start()
    entered.wait()
    try:
        text = hang.stacks()
        place = hang.place_of_thread(thread.ident)
    finally:
        leave.set()
        thread.join()
    loader = text[text.index("thread loader (") :]
    assert "in stuck_in_here" in loader
    assert any(state in loader.splitlines()[0] for state in ("waiting in futex", "sleeping", "running"))
    assert "thread MainThread (" in text and "test_stacks_have_every_thread" in text
    assert "in stuck_in_here < threading.py" in place
    assert hang.place_of_thread(1) == "gone"


def test_a_thread_that_runs_through_generators_is_shown_down_to_its_first_frame():
    """A generator that yields forgets who called it: a stack that is walked while others run ends there."""
    leave = threading.Event()

    def yields(depth):
        yield from yields(depth - 1) if depth else range(3)

    def stuck_in_here():
        while not leave.is_set():
            for _ in yields(20):
                pass

    thread = threading.Thread(target=stuck_in_here, name="loader")
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            text = hang.stacks()
            loader = text[text.index("thread loader (") :]
            assert "in stuck_in_here" in loader[: loader.index("\n\n")]
    finally:
        sys.setswitchinterval(interval)
        leave.set()
        thread.join()


def entry(**fields):
    return {
        "profiling_name": "nccl:all_reduce",
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 7,
        "p2p_seq_id": 0,
        "is_p2p": False,
        "state": "started",
        "retired": False,
        "input_sizes": [[3, 4]],
        "input_dtypes": ["Float"],
        "time_created_ns": time.time_ns() - 5_000_000_000,
        "frames": [
            {"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/distributed_c10d.py", "line": 1},
            {"name": "step", "filename": "/home/a/train.py", "line": 41},
        ],
        **fields,
    }


GROUPS = {"0": ("default_pg", "nccl", [0, 1, 2, 3, 8])}


def test_pending_collectives_are_named_with_their_group_and_place():
    done = entry(state="completed", retired=True)
    text = hang._text_of([done, entry(), entry(is_p2p=True, p2p_seq_id=3, profiling_name="nccl:send 0->1")], GROUPS)
    lines = text.splitlines()
    assert lines[0] == "pending collectives: 2"
    begin = "  nccl:all_reduce #7 of default_pg (ranks 0-3, 8), started, Float [3, 4], called 5."
    assert lines[1].startswith(begin) and lines[1].endswith("s ago at train.py:41 in step")
    assert "nccl:send 0->1 #3" in lines[2]
    assert hang._text_of([done], GROUPS).startswith("no collective is pending; the last one was nccl:all_reduce #7")
    assert "TORCH_FR_BUFFER_SIZE" in hang._text_of([], GROUPS)
    odd = {"profiling_name": "x"}  # of a torch that writes less
    assert "x #None of group " in hang._text_of([odd], {})


def test_a_program_without_process_groups_has_none():
    assert hang.pending_collectives() == ("", "")


def test_the_flight_recorder_is_on_with_a_torch_that_has_it_off(monkeypatch):
    monkeypatch.setattr(os, "environ", environment := {})
    hang.turn_on_flight_recorder()
    hang.turn_on_flight_recorder()
    assert environment == {"TORCH_FR_BUFFER_SIZE": "2000"}
    for chosen in ({"TORCH_FR_BUFFER_SIZE": "0"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}):
        monkeypatch.setattr(os, "environ", environment := dict(chosen))
        hang.turn_on_flight_recorder()
        assert environment == chosen


RANKS = """
import quick_torch, sys, time, torch, torch.distributed as dist
from pathlib import Path

rank, run = int(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{run.parent}/store", rank=rank, world_size=2)
dist.all_reduce(torch.ones(1))
if rank == 0:
    from always_program import train
    from firelane._always.triggers import Hang

    always, _ = train(run, 0.004)

    def wait_for_the_other():
        work = dist.all_reduce(torch.ones(5, 6), async_op=True)
        always.hang = Hang(factor=20, least_ns=400_000_000)  # from here on: a step may be slow, this one hangs
        work.wait()
    wait_for_the_other()
    always.stop()
else:
    while not list(run.glob("rank0/kept/*-hang/flight_rank0.json")):
        time.sleep(0.05)
    dist.all_reduce(torch.ones(5, 6))
dist.barrier()
dist.destroy_process_group()  # a program that ends without it is aborted by torch now and then
"""


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")
@pytest.mark.skipif(
    not hasattr(torch._C, "_distributed_c10d") or not hasattr(torch._C._distributed_c10d, "_dump_fr_trace"),
    reason="this torch has no flight recorder for gloo",
)
def test_a_rank_that_waits_for_another_says_in_which_collective(tmp_path):
    program, run = tmp_path / "program.py", tmp_path / "run"
    program.write_text(RANKS)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}"}
    environment["TORCH_FR_BUFFER_SIZE"] = "2000"  # torch 2.8 and 2.9: its group is made before always_on()
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(run)], env=environment, stderr=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    try:
        errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    (incident,) = (run / "rank0/kept").glob("*-hang")
    lines = (incident / "collectives.txt").read_text().splitlines()
    assert lines[0] == "pending collectives: 1"
    assert lines[1].startswith("  gloo:all_reduce #2 of default_pg (ranks 0-1), Float [5, 6], called ")
    assert lines[1].endswith("in wait_for_the_other")
    text = (incident / "incident.txt").read_text()
    assert "hang: no step for" in text and "in wait_for_the_other < program.py:" in text
    assert "in wait_for_the_other" in (incident / "stacks.txt").read_text()
    assert json.loads((incident / "flight_rank0.json").read_text())["pg_config"]["0"]["ranks"] == "[0, 1]"
    told = _trace.why(str(run / "rank0"), int(incident.name.split("-")[1]))
    assert "pending collectives: 1" in told and "firelane hangs " in told and "stacks of all threads" in told
    if Path(FIRELANE).exists():
        hangs = subprocess.run(
            [FIRELANE, "hangs", str(incident / "flight_rank0.json")], capture_output=True, text=True, check=True
        ).stdout
        assert "ranks wait in all_reduce #2 of default_pg for 1, of which there is no dump" in hangs
