"""docs/cpp.md: a C++ project that finds Firelane installed builds, runs and writes a trace."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firelane

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "tests" / "cpp_consumer"


def test_the_document_shows_the_project_that_is_tested():
    shown = re.findall(r"^```(cmake|cpp)\n(.*?)^```$", (ROOT / "docs" / "cpp.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown == [("cmake", (PROJECT / "CMakeLists.txt").read_text()), ("cpp", (PROJECT / "main.cc").read_text())]


def configure(source, build, environment, **defines):
    words = [f"-D{key}={value}" for key, value in {"Python_EXECUTABLE": sys.executable, **defines}.items()]
    command = ["cmake", "-G", "Ninja", "-S", source, "-B", build, *words]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


def build_target(target, source, build, environment, **defines):
    configured = configure(source, build, environment, **defines)
    assert configured.returncode == 0, configured.stderr
    subprocess.run(
        ["cmake", "--build", build, "--target", target], check=True, env=environment, stdout=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory, ccache_environment):
    """A folder that the recorder for C++ programs was installed into."""
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake, no ninja")
    build = ROOT / "build" / "cpp_installed"  # kept: the next run only builds what changed
    only = {"FIRELANE_PROFILER": "ON", "FIRELANE_RECORD_ONLY": "ON", "FIRELANE_CLI": "OFF", "FIRELANE_TESTS": "OFF"}
    # The example of examples/cpp would be built, too: ctest runs it.
    build_target("firelane_profiler_library", ROOT, build, ccache_environment, CMAKE_BUILD_TYPE="Release", **only)
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(
        ["cmake", "--install", build, "--component", "cpp", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL
    )
    return prefix


def test_a_torch_of_another_version_is_refused_when_the_program_is_configured(installed, tmp_path, ccache_environment):
    config = next(installed.rglob("firelaneConfig.cmake"))
    config.write_text(config.read_text().replace(torch.__version__.split("+")[0], "2.3.0"))
    try:
        done = configure(PROJECT, tmp_path / "build", ccache_environment, CMAKE_PREFIX_PATH=installed)
    finally:
        config.write_text(config.read_text().replace("2.3.0", torch.__version__.split("+")[0]))
    assert done.returncode != 0
    assert "was built for torch 2.3, and this is torch" in " ".join(done.stderr.split())


def test_a_project_that_finds_firelane_builds_and_records_itself(installed, tmp_path, ccache_environment):
    build = tmp_path / "build"  # Debug, as people do: once it lost every op, as torch itself is built for release
    build_target("all", PROJECT, build, ccache_environment, CMAKE_PREFIX_PATH=installed, CMAKE_BUILD_TYPE="Debug")
    subprocess.run([build / "my_program", tmp_path / "out.lane"], check=True, cwd=tmp_path)
    trace = firelane.open(tmp_path / "out.lane")
    rows = {row["name"]: row["count"] for row in trace.ops(side="host", rows=0)}
    assert trace.info["step_count"] == 3  # the last call of step() begins one more, which stop() discards
    assert (rows["aten::addmm"], rows["aten::randn"], rows["load batch"]) == (6, 3, 3)
    assert rows["autograd::engine::evaluate_function: AddmmBackward0"] == 6


def test_a_project_around_firelane_is_configured_without_its_tests_and_command(tmp_path, ccache_environment):
    done = configure(PROJECT, tmp_path, ccache_environment, FIRELANE_SOURCE=ROOT)
    assert done.returncode == 0, done.stderr
    targets = (tmp_path / "build.ninja").read_text()
    assert "libfirelane_record_torch.a" in targets
    assert not [name for name in re.findall(r"^build (\S+):", targets, re.MULTILINE) if name.endswith("_test")]
    assert "verb_record.cc" not in targets
