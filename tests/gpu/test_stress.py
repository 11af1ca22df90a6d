"""Recordings that start and stop while other threads use the GPU."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("flags", [[], ["--keep"]], ids=["CUPTI leaves", "CUPTI stays"])
def test_threads_that_launch_survive_recordings_that_start_and_stop(flags):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    script = str(Path(__file__).parent / "stress.py")
    subprocess.run([sys.executable, "-X", "faulthandler", script, "5", *flags], check=True, timeout=120)
