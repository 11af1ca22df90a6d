"""The package as users get it: the type stub, and `pip install .` into an empty environment."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import firelane

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "firelane" / "_trace.pyi"


def test_the_stub_matches_the_module(tmp_path):
    """After a change to the module, rewrite the stub with UPDATE=1 and review the diff."""
    fresh = tmp_path / "_trace.pyi"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "nanobind.stubgen",
            "-q",
            "-P",
            "-i",
            Path(firelane._trace.__file__).parent,
            "-m",
            "_trace",
            "-o",
            fresh,
        ],
        check=True,
        cwd=tmp_path,
    )
    if os.environ.get("UPDATE"):
        shutil.copyfile(fresh, STUB)
    assert fresh.read_text() == STUB.read_text()


def test_dir_lists_the_names_that_are_imported_on_first_use():
    assert {"install", "open", "profile", "profiler", "uninstall"} <= set(dir(firelane))
    assert "TYPE_CHECKING" not in dir(firelane)


def test_the_package_is_marked_as_typed():
    assert (STUB.parent / "py.typed").exists()


def _torch_series():
    torch = pytest.importorskip("torch")
    return ".".join(torch.__version__.split(".")[:2])


def test_pip_installs_the_package_and_the_command(tmp_path, trace_file, ccache_environment):
    """Builds the wheel with the installed build tools (--no-build-isolation), so that no package index is needed."""
    for tool in ("scikit_build_core", "nanobind"):
        pytest.importorskip(tool)
    env = dict(ccache_environment)
    if shutil.which("clang++-19"):
        env.setdefault("CXX", "clang++-19")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", tmp_path, ROOT],
        check=True,
        env=env,
    )
    (wheel,) = tmp_path.glob("firelane-*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    bin_dir = tmp_path / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", bin_dir / "python"]
    subprocess.run([*pip, "install", "-q", "--no-index", wheel], check=True, cwd=tmp_path)
    program = f"import firelane; print(firelane.__version__, len(firelane.open({str(trace_file)!r}).host_slices))"
    done = subprocess.run([bin_dir / "python", "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{firelane.__version__} 4\n"
    program = (
        "import importlib.metadata as m, firelane._trace as t; plugins = m.entry_points(group='tensorboard_plugins'); "
        "print([plugin.value for plugin in plugins], 'index.html' in t.page_names())"
    )
    done = subprocess.run([bin_dir / "python", "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True)
    has_page = "index.html" in firelane._trace.page_names()
    assert done.stdout == f"['firelane._tensorboard:Plugin'] {has_page}\n"
    done = subprocess.run([bin_dir / "firelane", "--version"], check=True, capture_output=True, text=True)
    assert firelane.__version__ in done.stdout
    command = [bin_dir / "python", "-m", "firelane", "--version", "--parts"]
    parts = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "recorder   torch is not installed here" in parts
    assert f"recorders  torch {_torch_series()}" in parts
    assert "sources    yes" in parts  # of firelane build-recorder
    done = subprocess.run([bin_dir / "firelane", "--version", "--parts"], check=True, capture_output=True, text=True)
    assert f"recorders  torch {_torch_series()}\n" in done.stdout
    if (ROOT / "viewer/dist/report.html").exists():
        subprocess.run([bin_dir / "firelane", "report", trace_file, "-o", tmp_path / "report.html"], check=True)
        assert "firelane-answers" in (tmp_path / "report.html").read_text()
