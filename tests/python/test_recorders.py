"""Which recorder is picked for which torch, and what is said when none fits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firelane
from firelane import _build_recorder, _recorders

ROOT = Path(__file__).resolve().parents[2]
PYTHONPATH = str(ROOT / "python")
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))


@pytest.mark.parametrize(
    "version, abi, name",
    [
        ("2.11.0", True, "torch_2_11"),
        ("2.11.1+cu128", True, "torch_2_11"),
        ("2.10.0.post3", True, "torch_2_10"),
        ("2.6.0+cu124", False, "torch_2_6_precxx11"),
        ("2.12.0.dev20260901+cu130", True, "torch_2_12_0_dev20260901_cu130"),
        ("2.11.0a0+git1234567", True, "torch_2_11_0a0_git1234567"),
        ("2.11.0rc1", True, "torch_2_11_0rc1"),
    ],
)
def test_releases_of_a_minor_version_share_a_recorder_and_other_builds_have_their_own(version, abi, name):
    assert _recorders.name_for(version, abi) == name


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty package and an empty cache."""
    monkeypatch.setattr(_recorders, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_recorders, "source_folder", lambda: ROOT)
    (tmp_path / "package/recorders").mkdir(parents=True)
    return tmp_path


def test_the_recorder_that_the_user_built_comes_before_the_one_of_the_package(folders):
    bundled = folders / "package/recorders/torch_2_11.so"
    bundled.touch()
    assert _recorders.find("2.11.0+cpu", True) == bundled
    own = _recorders.cache_folder() / "torch_2_11.so"
    own.parent.mkdir(parents=True)
    own.touch()
    assert _recorders.find("2.11.0+cpu", True) == own


def test_a_nightly_does_not_take_the_recorder_of_the_release(folders):
    (folders / "package/recorders/torch_2_11.so").touch()
    assert _recorders.find("2.11.0.dev20260101", True) is None


def test_a_torch_with_the_old_strings_does_not_take_a_recorder_with_the_new_ones(folders):
    (folders / "package/recorders/torch_2_6.so").touch()
    assert _recorders.find("2.6.0+cu124", False) is None


def test_a_recorder_without_the_gpu_is_better_than_none(folders):
    only = folders / "package/recorders/torch_2_11_cpu.so"
    only.touch()
    assert _recorders.find("2.11.0", True) == only


def test_the_refusal_names_both_sides_and_the_command(folders):
    for name in ("torch_2_9", "torch_2_10", "torch_2_6_precxx11"):
        (folders / f"package/recorders/{name}.so").touch()
    text = _recorders.refusal("2.16.0")
    assert "torch 2.6, 2.9, 2.10" in text and "this is torch 2.16.0" in text and "firelane build-recorder" in text
    assert "\n" not in text


def build_recorder(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "firelane", "build-recorder", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
    )


def test_without_a_compiler_one_line_says_what_to_install(tmp_path):
    pytest.importorskip("torch")
    done = build_recorder(PATH=str(tmp_path), CXX="")
    assert done.returncode == 1
    assert done.stderr.startswith("firelane: build-recorder: no C++ compiler")
    assert done.stderr.count("\n") == 1


def test_a_compiler_that_fails_is_quoted(tmp_path):
    pytest.importorskip("torch")
    compiler = tmp_path / "old-compiler"
    compiler.write_text("#!/bin/sh\necho unrecognized option -std=c++20 >&2; exit 1\n")
    compiler.chmod(0o755)
    done = build_recorder("--output", str(tmp_path), CXX=str(compiler))
    assert done.returncode == 1
    assert "unrecognized option" in done.stderr and "C++20" in done.stderr
    assert not [*tmp_path.glob("*.so")]


def test_missing_cupti_headers_are_named_with_the_switch_that_leaves_the_gpu_out(tmp_path):
    for header in ("cupti_activity.h", "cuda_runtime_api.h"):
        (tmp_path / header).touch()
    with pytest.raises(_build_recorder.BuildError, match=r"crt/host_defines\.h.*--no-gpu"):
        _build_recorder.find_cupti([tmp_path])
    (tmp_path / "crt").mkdir()
    (tmp_path / "crt/host_defines.h").touch()
    assert _build_recorder.find_cupti([tmp_path]) == [tmp_path]


def test_what_the_recorder_is_compiled_from_is_complete():
    """A source that only CMake or only the package knew of would be missing for users."""
    torch_rooms = (ROOT / "src/record/torch/CMakeLists.txt").read_text()
    for file in _recorders.source_files(ROOT):
        if file.suffix == ".cc" and file.parent.name == "torch":
            assert file.name in torch_rooms, file
        if file.suffix == ".cc" and file.parent.name in ("base", "format", "core", "cupti"):
            assert file.name in (file.parent / "CMakeLists.txt").read_text(), file


@pytest.mark.parametrize("words", [["--version", "--parts"], ["--parts"]])
def test_the_parts_of_an_installation_are_listed(words):
    done = subprocess.run(
        [sys.executable, "-m", "firelane", *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"firelane {firelane.__version__}"
    assert [line.split()[0] for line in lines[1:]] == ["Python", "viewer", "recorders", "recorder", "sources"]


@pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
def test_the_parts_name_a_recorder_without_the_gpu(tmp_path):
    """What `pip install .` beside a CPU build of torch leaves."""
    package = tmp_path / "lib/python3.11/site-packages/firelane"
    for file in ("_site/sitecustomize.py", "recorders/torch_2_11_cpu.so", "recorders/torch_2_12.so"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).touch()
    (tmp_path / "bin").mkdir()
    shutil.copy(FIRELANE, tmp_path / "bin/firelane")
    done = subprocess.run([tmp_path / "bin/firelane", "--parts"], check=True, capture_output=True, text=True)
    assert "recorders  torch 2.11 (no GPU), 2.12\n" in done.stdout


# As the program's own sitecustomize: torch says that it is a version that nobody knows yet.
FUTURE_TORCH = """
import importlib.util, sys
class Future:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch.version":
            return None
        sys.meta_path.remove(Future)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def execute_and_rename(module):
            execute(module)
            module.__version__ = "2.99.0"
        spec.loader.exec_module = execute_and_rename
        return spec
sys.meta_path.insert(0, Future)
"""


@pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
def test_a_torch_that_no_recorder_fits_is_one_line_and_the_program_runs(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "sitecustomize.py").write_text(FUTURE_TORCH)
    program = "import torch; print(torch.__version__, torch.ones(3).sum().item())"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]])
    (tmp_path / "program.py").write_text(program)
    command = [FIRELANE, "record", "-o", "run.lane", "--", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "2.99.0 3.0\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("firelane: the program is not being recorded: this firelane brings recorders for torch 2.")
    assert ", and this is torch 2.99.0; `" in line and "firelane build-recorder` compiles one for it" in line
    assert not (tmp_path / "run.lane").exists()


RECORD = """
import torch
from firelane import _recorders
from firelane.profiler import profile
print(_recorders.find(torch.__version__, torch.compiled_with_cxx11_abi()))
with profile() as prof:
    torch.ones(4) + torch.ones(4)
assert "aten::add" in {row.key for row in prof.key_averages()}
"""


def test_a_recorder_that_is_compiled_here_comes_first_and_records(tmp_path):
    """Takes 25 s of one core with clang 19, the compiler of this project."""
    torch = pytest.importorskip("torch")
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "FIRELANE_DIR": str(tmp_path)}
    if shutil.which("clang++-19"):
        own["CXX"] = os.environ.get("CXX") or "clang++-19"
    try:
        _build_recorder.find_compiler()
        _build_recorder.installed_torch()
        flags = ["--no-gpu"] if torch.version.cuda is None else []
        if not flags:
            _build_recorder.find_cupti(_build_recorder.cuda_header_folders())
    except _build_recorder.BuildError as error:
        pytest.skip(str(error))
    done = build_recorder(*flags, **own)
    assert done.returncode == 0, done.stderr
    assert f"recording with torch {torch.__version__} works now" in done.stdout
    (library,) = (tmp_path / "cache/firelane").glob("recorders-*/torch_*.so")
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **own}
    done = subprocess.run(
        [sys.executable, "-c", RECORD], check=False, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0 and done.stdout == f"{library}\n", done.stderr
