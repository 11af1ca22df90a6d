"""`firelane record` with a CUDA program, and what the other verbs say about the recording."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import FIRELANE

HERE = Path(__file__).resolve().parent

PROGRAM = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
from cuda_programs import train_step
step = train_step(4)
for _ in range(80):
    step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not FIRELANE:
        pytest.skip("the firelane binary is not built")
    folder = tmp_path_factory.mktemp("record")
    (folder / "program.py").write_text(PROGRAM)
    flags = ["--wait", "10", "--steps", "50", "--after", "10", "--shapes", "--memory", "--modules", "-o", "run.lane"]
    done = subprocess.run(
        [FIRELANE, "record", *flags, "--", sys.executable, "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def ask(recorded, *words: str) -> str:
    done = subprocess.run(
        [FIRELANE, *words, "run.lane"], cwd=recorded[0], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_final_table_has_device_columns_and_the_verdict_is_about_the_gpu(recorded):
    said = recorded[1]
    assert "Self CUDA" in said and "Self CUDA time total" in said
    assert "50 steps recorded" in said and "timed without recording" in said
    assert "the device is busy" in said, said
    assert "incomplete" not in said, said


def test_info_has_the_gpu_the_clock_mapping_and_true_steps_of_host_and_device(recorded):
    info = json.loads(ask(recorded, "info", "--json"))
    assert info["devices"] and info["devices"][0]["total_memory_bytes"] > 0
    assert info["cuda_calls_by"] == "callbacks" and info["device_clock_readings"] >= 2
    assert 0 < info["device_clock_error_ns"] < 1_000_000
    assert info["true_step_count"] >= 10 and info["true_step_ns"] > 0 and info["true_device_step_ns"] > 0
    assert info["recorder_losses"] == []
    assert "Device times off by" in ask(recorded, "info")


def test_steps_have_their_kernels(recorded):
    steps = json.loads(ask(recorded, "steps", "--json"))
    assert (steps["step_count"], steps["recorded_steps"], steps["found_by"]) == (3, "light", "marked")
    assert len({step["kernels"] for step in steps["steps"]}) == 1 and steps["steps"][0]["kernels"] > 100
    assert all(step["device_busy_ns"] > 0 for step in steps["steps"])
    full = "select count(*) as steps from host_slices where name like 'ProfilerStep#%'"
    done = subprocess.run(
        [FIRELANE, "sql", "run.lane", full, "--json"], cwd=recorded[0], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["rows"] == [{"steps": 50}]


def test_the_energy_of_a_step_is_known(recorded):
    cost = json.loads(ask(recorded, "cost", "--json"))
    assert cost["energy_per_step_joules"] > 0, cost


def test_memory_has_the_gpus_allocator(recorded):
    memory = json.loads(ask(recorded, "memory", "--json"))
    device = next(row for row in memory["devices"] if row["device"] != "CPU")
    assert device["peak_bytes"] > 0 and device["peak_reserved_bytes"] >= device["peak_bytes"]


REPORTS = "diagnose breakdown idle launches syncs kernels ops lanes modules fusion input critical-path".split()


@pytest.mark.parametrize("verb", REPORTS)
def test_every_report_works(recorded, verb):
    assert ask(recorded, verb)


def test_the_verdict_is_about_the_device(recorded):
    verdict = json.loads(ask(recorded, "diagnose", "--json"))
    assert verdict["step"]["step_ns"] > 0 and verdict["step"]["known_from"] == "timed without recording"
