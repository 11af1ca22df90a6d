"""A recording leaves a CUDA graph that is being captured alone."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_captures_survive_recordings_that_start_pause_and_stop_in_them():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    subprocess.run(
        [sys.executable, "-X", "faulthandler", str(Path(__file__).parent / "capture.py")], check=True, timeout=120
    )
