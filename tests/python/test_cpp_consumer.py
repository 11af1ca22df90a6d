"""docs/cpp.md: a C++ project that uses Firelane through add_subdirectory builds, runs and writes a trace."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firelane

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "tests" / "cpp_consumer"


def test_the_document_shows_the_project_that_is_tested():
    shown = re.findall(r"^```(cmake|cpp)\n(.*?)^```$", (ROOT / "docs" / "cpp.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown == [("cmake", (PROJECT / "CMakeLists.txt").read_text()), ("cpp", (PROJECT / "main.cc").read_text())]


def test_a_project_around_firelane_builds_and_records_itself(tmp_path, ccache_environment):
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake, no ninja")
    build = ROOT / "build" / "cpp_consumer"  # kept: the next run only builds what changed
    subprocess.run(
        [
            "cmake",
            "-G",
            "Ninja",
            "-S",
            PROJECT,
            "-B",
            build,
            f"-DFIRELANE_SOURCE={ROOT}",
            "-DCMAKE_BUILD_TYPE=Debug",  # as people do; once it lost every op, as torch itself is built for release
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        check=True,
        env=ccache_environment,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["cmake", "--build", build], check=True, env=ccache_environment, stdout=subprocess.DEVNULL)
    assert not [*build.rglob("*_test")]  # Firelane's own tests are not built

    subprocess.run([build / "my_program", tmp_path / "out.lane"], check=True, cwd=tmp_path)
    trace = firelane.open(tmp_path / "out.lane")
    rows = {row["name"]: row["count"] for row in trace.ops(side="host", rows=0)}
    assert trace.info["step_count"] == 3  # the last call of step() begins one more, which stop() discards
    assert (rows["aten::addmm"], rows["aten::randn"], rows["load batch"]) == (6, 3, 3)
    assert rows["autograd::engine::evaluate_function: AddmmBackward0"] == 6
