"""Finds the module in the source tree and provides small traces to open."""

import gc
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from small_trace import EVENTS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

# Some virtual machines report AMX but trap on it: the first bf16 matrix product of oneDNN would kill pytest.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# torch.compile builds and tries a program for each vector unit first: 25 of 30 seconds, which no test here is about.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
# Programs that tests run find quick_torch.
PROGRAMS = ROOT / "tests" / "python"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROGRAMS), os.environ.get("PYTHONPATH")]))


if importlib.util.find_spec("firelane._trace") is None:
    pytest.exit(
        "python/firelane has no _trace module for this Python; build it:\n"
        "  cmake --preset release -DFIRELANE_PYTHON=ON && cmake --build --preset release --target _trace",
        returncode=1,
    )


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return path


@pytest.fixture
def trace(trace_file):
    import firelane

    return firelane.open(trace_file)


@pytest.fixture
def no_collections():
    """No garbage collection meanwhile: it would free what other tests have left, in the midst of a recording."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def ccache_environment():
    """For tests that run CMake: uses ccache, with the same settings as the Makefile."""
    env = dict(os.environ)
    if shutil.which("ccache"):
        env.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        env.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
        env.setdefault("CCACHE_DEPEND", "1")
        env.setdefault("CCACHE_BASEDIR", str(ROOT))
        env.setdefault("CCACHE_IGNOREOPTIONS", "-Werror")
    return env


@pytest.fixture(scope="session")
def gpt_full():
    return ROOT / "tests" / "data" / "gpt_full.json.gz"


# Files whose tests run programs for long. pytest-xdist hands out files in this order (--no-loadscope-reorder): begun
# last, one of them would keep one core busy while the others have nothing left.
LONG = [
    "test_package",
    "test_cpp_consumer",
    "test_record_command",
    "test_always",
    "test_daemon",
    "test_attach",
    "test_tuning",
    "test_verify",
    "test_recorders",
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What a program that failed wrote stands in the report: the exception alone only says that it failed."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        for name in ("stdout", "stderr"):
            text = getattr(error, name) or ""
            text = text.decode(errors="replace") if isinstance(text, bytes) else text
            if text:
                report.sections.append((f"{name} of {error.cmd}", text[-20_000:]))
    return report
