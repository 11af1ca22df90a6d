"""One vocabulary of options, one table of environment variables: what is written by hand agrees with C++'s lists."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch")

import firelane
from firelane import _record

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build/release/firelane"))
DEFAULTS = {name: is_on for name, is_on, _, _ in _record.OPTIONS}
BESIDE = (
    "light",
    "metric_interval_ms",
    "sample_rate",
    "schedule",
    "on_trace_ready",
)  # of firelane.profile: which steps, and what beside them
HELP = {name: text for name, _, _, text in _record.OPTIONS}


def fields_of(path: str, start: str, end: str) -> str:
    text = (ROOT / path).read_text()
    return text[text.index(start) : text.index(end, text.index(start))]


def rows_of_table(path: str, first_cell: str) -> list[list[str]]:
    """The rows of the Markdown table whose header begins with `first_cell`."""
    lines = (ROOT / path).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_cell} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_cpp_header_has_the_same_names_defaults_and_words():
    struct = fields_of("include/firelane/profiler.h", "struct ProfilerOptions", "ProfilerSchedule schedule;")
    fields = re.findall(r"bool (\w+) = (\w+); +// (.*)", struct)
    assert {name for name, _, _ in fields} == DEFAULTS.keys() - {"stacks", "modules", "lines"}  # those are Python's
    assert fields == [(name, str(DEFAULTS[name]).lower(), HELP[name]) for name, _, _ in fields]


def test_python_has_the_same_names_and_defaults():
    arguments = inspect.signature(firelane.profile).parameters
    assert {n: p.default for n, p in arguments.items() if n not in BESIDE} == DEFAULTS
    options = _record.RecordOptions()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS
    stub = fields_of("python/firelane/_record.pyi", "    def __init__", ") -> None")
    assert {n: d == "True" for n, d in re.findall(r"(\w+): bool = (\w+)", stub) if n in DEFAULTS} == DEFAULTS


@pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
def test_the_command_has_a_flag_for_each():
    text = subprocess.run([FIRELANE, "record", "--help"], capture_output=True, text=True, check=True).stdout
    text = " ".join(text.split())
    for name, is_on in DEFAULTS.items():
        dashed = name.replace("_", "-")
        assert (f"--no-{dashed} leave out {HELP[name]}" if is_on else f"--{dashed} {HELP[name]}") in text


def test_options_reach_the_recorder_under_any_front(monkeypatch):
    asked = []
    from firelane import _auto
    from firelane.profiler import _backend

    def start(**options):
        asked.append({name: options[name] for name in DEFAULTS if name != "cuda"})  # the GPU's is off without a GPU
        raise RuntimeError("enough")

    monkeypatch.setattr(_backend, "start", start)
    wanted = {name: not is_on for name, is_on in DEFAULTS.items() if name != "cuda"}
    with pytest.raises(RuntimeError, match="enough"):
        firelane.profile(**wanted).start()
    with pytest.raises(RuntimeError, match="enough"):
        _auto.Auto(_auto.Plan(output=os.devnull, options=wanted))._prepare()
    assert asked == [wanted, wanted]


def test_the_documented_options_are_those_that_exist():
    rows = rows_of_table("docs/profiler.md", "option")
    documented = [(row[0].strip("`"), row[1] == "on", row[3].strip("`"), row[4]) for row in rows]
    assert documented == list(_record.OPTIONS)


def test_the_documented_environment_variables_are_those_that_are_read():
    rows = rows_of_table("docs/profiler.md", "variable")
    assert [(row[0].strip("`"), row[2], row[1]) for row in rows] == list(_record.ENVIRONMENT)


def test_no_environment_variable_is_read_that_is_documented_nowhere():
    """Users' variables stand in docs/profiler.md, those for working on Firelane in CONTRIBUTING.md."""
    tables = rows_of_table("docs/profiler.md", "variable") + rows_of_table("CONTRIBUTING.md", "variable")
    documented = {name.strip("` ") for row in tables for name in row[0].split(",")}
    reads = re.compile(r"""(?:getenv\("|environ(?:\.get\(|\[)["']|process\.env\.)(FIRELANE\w*)""")
    files = subprocess.run(
        ["git", "ls-files", "src", "python", "tests", "bench", "tools", "viewer"],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    found = {}
    for file in files.stdout.split():
        if file.endswith((".cc", ".h", ".py", ".mjs", ".ts", ".tsx", ".sh")):
            for name in reads.findall((ROOT / file).read_text()):
                found.setdefault(name, file)
    assert {name: file for name, file in found.items() if name not in documented} == {}
    read_by_product = [file for file in found.values() if file.startswith("src/") and "test" not in Path(file).name]
    assert not read_by_product, "src/base/environment.h is for that"
