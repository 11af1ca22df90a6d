"""record/python on every CPython from 3.10 on that is installed under ~/.pyenv, without torch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import firelane

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
PYTHONS = sorted(p for p in (Path.home() / ".pyenv/versions").glob("3.1[0-9].*/bin/python3") if p.exists())
LIBRARIES = [BUILD / f"src/{room}/libfirelane_{room.replace('/', '_')}.a" for room in ("record/core", "format", "base")]


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda p: p.parts[-3])
def python(request):
    compiler = shutil.which("clang++-19") or shutil.which("g++")
    if compiler is None or not all(lib.exists() for lib in LIBRARIES):
        pytest.skip("no compiler, or no release build")
    include = subprocess.check_output(
        [request.param, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], text=True
    ).strip()
    folder = BUILD / "python-versions" / request.param.parts[-3]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "frames_module.so"
    sources = [ROOT / "tests/python/frames_module.cc", *sorted((ROOT / "src/record/python").glob("*.cc"))]
    newest = max(p.stat().st_mtime for p in [*sources, *LIBRARIES, *(ROOT / "src/record/python").glob("*.h")])
    if not target.exists() or target.stat().st_mtime < newest:
        at_once = folder / "sources.cc"  # most of a compilation is reading headers
        at_once.write_text("".join(f'#include "{source}"\n' for source in sources))
        subprocess.run(
            [
                compiler,
                "-std=c++20",
                "-O1",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-missing-field-initializers",
                "-Wno-deprecated-declarations",
                "-Wno-cast-function-type",
                f"-I{ROOT / 'src'}",
                "-isystem",
                include,
                at_once,
                *LIBRARIES,
                "-lzstd",
                "-lpthread",
                "-o",
                target,
            ],
            check=True,
        )
    return request.param, folder


@pytest.mark.skipif(not PYTHONS, reason="no other Python under ~/.pyenv")
@pytest.mark.parametrize("other", ["alone", "cprofile"])
def test_frames_c_calls_collections_and_modules(python, other, tmp_path):
    interpreter, folder = python
    lane = tmp_path / "frames.lane"
    done = subprocess.run(
        [interpreter, ROOT / "tests/python/frames_program.py", folder, lane, other],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    slices = list(firelane.open(str(lane)).host_slices)
    count = {}
    for s in slices:
        name = s["name"].rsplit("): ", 1)[-1]
        count[name] = count.get(name, 0) + 1
    assert count["everything"] == 1
    assert count["raises"] == 1
    assert count["deep"] == 4
    assert count["numbers"] == 3  # two values and the end
    assert count["in_thread"] == 1 and count["<built-in function len>"] >= 1
    assert count["gc: generation 2"] == 1
    assert [s["name"] for s in slices if s["category"] == "module"] == [
        "model (Module)",
        "model.first (Leaf)",
        "model.second (Module)",
        "model.second.inner (Leaf)",
    ]
    by_name = {s["name"].rsplit("): ", 1)[-1]: s for s in slices}
    outer = by_name["everything"]
    for inner in ("raises", "deep", "numbers", "gc: generation 2", "model (Module)"):
        s = by_name[inner]
        assert outer["start_ns"] <= s["start_ns"], inner
        assert s["start_ns"] + s["duration_ns"] <= outer["start_ns"] + outer["duration_ns"], inner
    assert by_name["in_thread"]["lane"] != outer["lane"]


@pytest.mark.skipif(not PYTHONS, reason="no other Python under ~/.pyenv")
def test_the_line_that_runs_is_read_from_the_frames_of_every_python(python):
    interpreter, folder = python
    done = subprocess.run(
        [interpreter, ROOT / "tests/python/lines_program.py", folder],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["same"] * (50 + 17)
