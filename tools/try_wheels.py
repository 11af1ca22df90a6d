#!/usr/bin/env python3
"""Installs the wheels of dist/ as a user would, for pairs of Python and torch, and prints what works as a table.

    tools/try_wheels.py 3.12:2.11 3.10:2.6           # pairs; without any: those that docs/install.md names
    tools/try_wheels.py --profiler-tests 3.12:2.11   # and the profiler's tests of this checkout, with what they say

Each pair gets a fresh virtual environment with torch from the package index, and is deleted afterwards (a torch with
CUDA takes six gigabytes); with --environments DIR they stay there, and only firelane is installed again the next time.
Programs run with nothing on PATH but the environment: no compiler, no tools.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from wheels import find_python

ROOT = Path(__file__).resolve().parent.parent
# The table of docs/install.md has a row for each.
PAIRS = ["3.10:2.6", "3.12:2.8", "3.13:2.9", "3.11:2.11", "3.11:2.13", "3.13:2.15", "3.14:2.15"]

PROGRAM = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(14):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
"""

# Half of its time in C, so that its stacks have native frames.
BUSY = "import time, zlib\nend = time.time() + 3\nwhile time.time() < end: zlib.compress(bytes(1 << 20))"

PROFILE = """
import firelane, torch
from firelane.profiler import ProfilerActivity, profile, record_function
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as prof:
    with record_function("mine"):
        torch.nn.Linear(8, 8)(torch.randn(4, 8)).sum().backward()
names = {event.key for event in prof.key_averages()}
assert {"aten::addmm", "mine"} <= names, names
prof.export_chrome_trace("chrome.json")
assert len(firelane.open("chrome.json").host_slices) > 10
assert not prof.losses if hasattr(prof, "losses") else True
"""


@dataclass
class Step:
    name: str
    ok: bool
    seconds: float
    text: str

    def __str__(self) -> str:
        counts = re.findall(r"^(\d+ (?:passed|failed|skipped).*) in [\d.]+s", self.text, re.MULTILINE)
        said = f": {counts[-1]}" if counts else ""
        return f"{self.name} {'ok' if self.ok else 'FAILED'}{said} ({self.seconds:.1f} s)"


class Trial:
    def __init__(self, folder: Path, environment: Path, python: Path) -> None:
        self.folder, self.steps = folder, list[Step]()
        self.bin = environment / "bin"
        if not (self.bin / "python").exists():
            subprocess.run([python, "-m", "venv", environment], check=True)
        self.bare = {"PATH": str(self.bin), "HOME": str(folder), "LANG": "C.UTF-8"}  # as in a minimal container

    def run(self, name: str, *command: object, environment: dict[str, str] | None = None, expect: str = "") -> bool:
        begin = time.monotonic()
        done = subprocess.run(
            [str(word) for word in command],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.bare if environment is None else environment,
        )
        text = done.stdout + done.stderr
        ok = done.returncode == 0 and re.search(expect, text) is not None
        self.steps.append(Step(name, ok, time.monotonic() - begin, text))
        return ok


def wheel_for(version: str) -> Path:
    tag = "cp" + version.replace(".", "")
    found = sorted(
        (ROOT / "dist").glob(f"firelane-*-{tag}-{tag}-manylinux*.whl"), key=lambda file: file.stat().st_mtime
    )
    if not found:
        raise SystemExit(f"try_wheels: dist/ has no wheel for Python {version}; tools/wheels.py builds it")
    return found[-1]


def install_torch(trial: Trial, series: str, uv: str | None) -> bool:
    wanted = [f"torch=={series}.*", "numpy"]
    if uv is None:
        return trial.run("torch", trial.bin / "pip", "install", "-q", *wanted, environment=dict(os.environ))
    index = subprocess.run(["pip", "config", "get", "global.index-url"], check=False, capture_output=True, text=True)
    chosen = ["--default-index", index.stdout.strip()] if index.stdout.strip() else []
    command = [uv, "pip", "install", "-q", "--native-tls", "--python", trial.bin / "python", *chosen, *wanted]
    return trial.run("torch", *command, environment=dict(os.environ))


def run_profiler_tests(trial: Trial, python: Path, more: list[str]) -> None:
    """The tests of the profiler and of its parity with torch's.

    From a folder without the checkout's package beside it, so that they find the one that was installed.
    """
    needed = re.findall(
        r"^(?:pytest|prometheus-client|opentelemetry-sdk)==.*",
        (ROOT / "tools/requirements.txt").read_text(),
        re.MULTILINE,
    )
    trial.run("pytest", python, "-m", "pip", "install", "-q", *needed, environment=dict(os.environ))
    place = trial.folder / "checkout"
    shutil.copytree(ROOT / "tests/python", place / "tests/python", ignore=shutil.ignore_patterns("__pycache__"))
    for linked in ("tests/data", "src", "docs", "contrib"):
        (place / linked).symlink_to(ROOT / linked)
    tests = [place / "tests/python/profiler", place / "tests/python/parity"]
    options = ["-q", "-p", "no:cacheprovider", "-rfE", *more]
    environment = {
        **os.environ,
        "PATH": f"{trial.bin}:{os.environ['PATH']}",
        "FIRELANE_BINARY": str(trial.bin / "firelane"),
    }
    trial.run("profiler tests", python, "-m", "pytest", *tests, *options, environment=environment)


def try_pair(version: str, series: str, wanted: argparse.Namespace) -> Trial:
    python = find_python(version)
    if python is None:
        raise SystemExit(f"try_wheels: Python {version} is not here")
    folder = Path(tempfile.mkdtemp(prefix=f"firelane-try-{version}-{series}-", dir=wanted.folder))
    kept = wanted.environments and wanted.environments / f"env-{version}-{series}"
    trial = Trial(folder, kept or folder / "venv", python)
    own = trial.bin / "python"
    options = ["-q", "--no-index", "--force-reinstall", "--disable-pip-version-check"]
    trial.run("install", own, "-m", "pip", "install", *options, wheel_for(version))
    sample = ROOT / "tests/data/gpt_slowdata.json.gz"
    trial.run("read", trial.bin / "firelane", "diagnose", sample, expect="input")
    trial.run(
        "open", own, "-c", f"import firelane; print(len(firelane.open({str(sample)!r}).host_slices))", expect=r"\d"
    )
    native = [
        trial.bin / "firelane",
        "sample",
        "--native",
        "--duration",
        "1",
        "-o",
        "stacks.txt",
        "--",
        own,
        "-c",
        BUSY,
    ]
    trial.run("native frames", *native, expect=r"stacks\.txt|apt install libdw1")
    has_torch = kept and [*kept.glob("lib/python*/site-packages/torch/version.py")]
    if not has_torch and not install_torch(trial, series, wanted.uv):
        return trial
    (trial.folder / "program.py").write_text(PROGRAM)
    (trial.folder / "with_profile.py").write_text(PROFILE)
    trial.run("profile", own, "with_profile.py")
    record = [trial.bin / "firelane", "record", "--shapes", "--memory", "-o", "trace.lane", "--", own, "program.py"]
    trial.run("record", *record, expect="wrote trace.lane")
    trial.run("diagnose", trial.bin / "firelane", "diagnose", "trace.lane", expect="(?i)step")
    trial.run(
        "parts", own, "-m", "firelane", "--version", "--parts", expect=rf"recorder +for torch {series}.*with the GPU"
    )
    if wanted.build_recorder:  # a compiler and nothing else; the result comes before the one of the wheel
        whole = {**trial.bare, "PATH": f"{trial.bin}:{os.environ['PATH']}"}
        trial.run("build-recorder", trial.bin / "firelane", "build-recorder", environment=whole, expect="works now")
        trial.run("record with it", record[0], "record", "--force", *record[2:], expect="wrote trace.lane")
    if wanted.profiler_tests:
        run_profiler_tests(trial, own, ["-x"] if wanted.first else ["--tb=short"])
    return trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="PYTHON:TORCH")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the environments are made")
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", help="keep the environments there, and use them again"
    )
    parser.add_argument(
        "--build-recorder", action="store_true", help="compile a recorder as well, by the wheel's sources"
    )
    parser.add_argument(
        "--uv", default=shutil.which("uv") or str(ROOT / ".venv/bin/uv"), help="installs torch faster than pip"
    )
    parser.add_argument("--profiler-tests", action="store_true", help="run tests/python/profiler and parity, too")
    parser.add_argument("--first", action="store_true", help="with --profiler-tests: stop at the first failure")
    parser.add_argument("--keep", action="store_true", help="do not delete the environments")
    wanted = parser.parse_args()
    if not Path(wanted.uv).exists():
        wanted.uv = None
    failed = False
    print("Python  torch  result")
    for pair in wanted.pairs:
        version, series = pair.split(":")
        trial = try_pair(version, series, wanted)
        print(f"{version:<7} {series:<6} {', '.join(map(str, trial.steps))}", flush=True)
        for step in trial.steps:
            if not step.ok:
                failed = True
                print("\n".join("    " + line for line in step.text.strip().splitlines()[-25:]), flush=True)
        if not wanted.keep:
            shutil.rmtree(trial.folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
