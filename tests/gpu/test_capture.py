"""A recording does not disturb the capture of a CUDA graph."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_captures_survive_recordings_that_start_pause_and_stop_inside_them():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    subprocess.run(
        [sys.executable, "-X", "faulthandler", str(Path(__file__).parent / "capture.py")], check=True, timeout=120
    )
