"""What `pip install .` says where a part cannot be built: the part, the remedy, the switch, in one line.

CMake as pip runs it (SKBUILD), on a copy without .venv and without the viewer's page. Only configures.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = """
__version__ = "2.11.0+{kind}"
def compiled_with_cxx11_abi():
    return True
"""


@pytest.fixture
def checkout(tmp_path):
    if not (shutil.which("cmake") and shutil.which("ninja")):
        pytest.skip("no cmake, no ninja")
    copy = tmp_path / "checkout"
    (copy / "viewer").mkdir(parents=True)
    for name in ("CMakeLists.txt", "include", "python", "src", "tools"):
        (copy / name).symlink_to(ROOT / name)
    return copy


def configure(checkout, *words, environment=None):
    words = ["-DSKBUILD=2", "-DFIRELANE_PYTHON=ON", "-DFIRELANE_TESTS=OFF", *words]
    if not any("Python_EXECUTABLE" in word for word in words):
        words.append(f"-DPython_EXECUTABLE={sys.executable}")
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CXX")}
    return subprocess.run(
        ["cmake", "-G", "Ninja", "-S", checkout, "-B", checkout / "build", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**env, **(environment or {})},
    )


def refusal(done):
    """The one line, of a configuration that failed."""
    assert done.returncode != 0
    (line,) = [line.strip() for line in done.stderr.splitlines() if "firelane: " in line]
    return line


def python_with(tmp_path, torch_kind=None):
    """A virtual environment with nanobind and, if told so, with as much of a torch as CMake asks for."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (site / "nanobind").symlink_to(Path(pytest.importorskip("nanobind").__file__).parent)
    if torch_kind:
        (site / "torch").mkdir()
        (site / "torch/__init__.py").write_text(TORCH.format(kind=torch_kind))
        if torch_kind != "cpu":
            macros = site / "torch/include/c10/cuda/impl/cuda_cmake_macros.h"
            macros.parent.mkdir(parents=True)
            macros.touch()
    return f"-DPython_EXECUTABLE={tmp_path / 'venv/bin/python'}"


def test_all_missing_libraries_are_named_at_once_with_what_installs_them(checkout):
    """A CMake that looks where nothing is."""
    modes = [f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("INCLUDE", "LIBRARY", "PACKAGE")]
    empty = {"PKG_CONFIG_LIBDIR": "/nowhere", "PKG_CONFIG_PATH": ""}
    done = configure(checkout, "-DCMAKE_FIND_ROOT_PATH=/nowhere", *modes, environment=empty)
    line = refusal(done)
    for name in ("simdjson", "ISA-L", "fmt", "CLI11", "SQLite", "protozero", "cpp-httplib", "toml++", "zstd"):
        assert f" {name}, " in line or f" {name}. " in line, name
    assert "`make setup`" in line and "apt install " in line and "GoogleTest" not in line
    setup = (ROOT / "tools/setup.sh").read_text().split()
    packages = line.partition("apt install ")[2].split()
    assert len(packages) >= 9 and set(packages) <= set(setup)


def test_libraries_that_are_there_are_not_named(checkout):
    words = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("simdjson", "fmt")]
    line = refusal(configure(checkout, *words))
    assert "not found: simdjson, fmt. " in line and line.endswith("apt install libsimdjson-dev libfmt-dev")


def test_a_recorder_that_cannot_be_built_is_named_with_the_switch_that_leaves_it_out(checkout, tmp_path):
    line = refusal(configure(checkout, python_with(tmp_path)))
    assert "the recorder: no torch" in line and "; to leave the recorder out: " in line
    assert "-C cmake.define.FIRELANE_RECORDER=OFF" in line


NO_CUPTI = "-DFIRELANE_CUPTI_INCLUDE="  # an empty answer, which CMake does not look for again


def test_a_torch_with_cuda_and_without_cuptis_headers_is_refused(checkout, tmp_path):
    line = refusal(configure(checkout, python_with(tmp_path, "cu130"), "-DFIRELANE_VIEWER=OFF", NO_CUPTI))
    assert "recording GPUs: no CUPTI headers" in line and "FIRELANE_GPU=OFF" in line


def test_a_cpu_build_of_torch_leaves_gpus_out_with_one_line(checkout, tmp_path):
    done = configure(checkout, python_with(tmp_path, "cpu"), "-DFIRELANE_VIEWER=OFF", NO_CUPTI)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("firelane: ")]
    assert line.startswith("firelane: recording GPUs is left out: torch 2.11.0+cpu is a CPU build")
    # `firelane --parts` reads it from the name: "torch 2.11 (no GPU)".
    installed = [file.read_text() for file in (checkout / "build").rglob("cmake_install.cmake")]
    assert any("torch_2_11_cpu.so" in text for text in installed)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


WITHOUT_TORCH = ["-DFIRELANE_RECORDER=OFF", "-DFIRELANE_GPU=OFF"]
NODE_CASES = {
    "npm is there, Node.js is not": (None, "exit 0", "no npm with Node.js to build it. Install Node.js 18 or newer"),
    "Node.js is older than Vite's": ("echo v16.20.2", "exit 0", "Node.js 16.20.2 "),
    "npm fails": (
        "echo v18.20.4",
        "echo 'npm error network' >&2; exit 1",
        "`npm ci --omit=dev --no-audit --no-fund` failed",
    ),
}


@pytest.mark.parametrize("node, npm, said", NODE_CASES.values(), ids=NODE_CASES)
def test_a_viewer_that_cannot_be_built_is_named_with_its_reason(checkout, tmp_path, node, npm, said):
    tools = tmp_path / "bin"
    tools.mkdir()
    script(tools / "npm", npm)
    words = [*WITHOUT_TORCH]
    if node:
        script(tools / "node", node)
    else:
        words.append("-DNODE=")
    environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    line = refusal(configure(checkout, *words, environment=environment))
    assert line.startswith("firelane: the viewer: ") and said in line
    assert line.endswith("; to leave the viewer out: pip install . -C cmake.define.FIRELANE_VIEWER=OFF")


def test_the_version_of_nodejs_is_the_one_that_the_viewer_names():
    wanted = json.loads((ROOT / "viewer/package.json").read_text())["engines"]["node"].removeprefix(">=")
    text = (ROOT / "tools/cmake/FirelaneViewer.cmake").read_text()
    assert f"VERSION_GREATER_EQUAL {wanted})" in text and f"Node.js {wanted} or newer" in text


def test_a_compiler_that_only_has_a_name_with_a_version_is_found_and_none_is_one_line(checkout, tmp_path):
    """Debian's clang-19, which `make setup` installs, brings no c++ and no clang++."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ninja").symlink_to(shutil.which("ninja"))
    hidden = ["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    environment = {"PATH": str(tools)}
    cmake = shutil.which("cmake")
    (tools / "cmake").symlink_to(cmake)
    line = refusal(configure(checkout, *hidden, environment=environment))
    assert "no C++ compiler" in line and "apt install g++" in line
    script(tools / "clang++-19", "exit 1")
    done = configure(checkout, *hidden, environment=environment)
    assert f"{tools / 'clang++-19'}" in done.stdout + done.stderr and "no C++ compiler" not in done.stderr
