"""A C++ program that records itself on the GPU through firelane/profiler.h."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
firelane = pytest.importorskip("firelane", reason="the reader is not built here")


def test_a_cpp_program_records_kernels_steps_and_memory(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake, no ninja")
    flags = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    flags += [f"-DTORCH_LIBRARIES_FOLDER={Path(torch.__file__).parent / 'lib'}"]
    if carried := os.environ.get("CARRY"):
        flags += [f"-DFIRELANE_ZSTD_INCLUDE={carried}/include"]
    built = tmp_path / "build"
    for command in (["cmake", "-G", "Ninja", "-S", HERE / "cpp", "-B", built, *flags], ["cmake", "--build", built]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    done = subprocess.run(
        [built / "cuda_program", tmp_path / "run.lane"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    trace = firelane.open(str(tmp_path / "run.lane"))
    kernels = [row["name"] for row in trace.sql("select name from device_slices where kind = 'kernel'")]
    assert sum("sin_kernel" in name for name in kernels) == 2
    assert trace.info["step_count"] == 2 and trace.info["true_device_step_ns"] > 0
    assert len(list(trace.sql("select 1 from memory_events where device_type = 1 and kind = 'alloc'"))) >= 4
    losses = {loss["name"] for loss in trace.info["losses"]}
    assert not {"link.kernel_before_launch", "link.device_slice_without_launch"} & losses
