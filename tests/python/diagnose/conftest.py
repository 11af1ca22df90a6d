"""Tests of the programs in bench/diagnose, which the scoreboards record."""

import sys
from pathlib import Path

import pytest

try:
    import torch

    import firelane._record  # noqa: F401 (can it be imported?)
except ImportError as error:
    print(f"tests/python/diagnose is skipped: {error}")
    collect_ignore_glob = ["test_*.py"]

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "diagnose"))


@pytest.fixture(autouse=True)
def one_thread():
    """The programs are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
