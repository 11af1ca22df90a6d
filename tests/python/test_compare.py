"""firelane.compare and firelane.gate, the pytest fixture, the action's script, and runs of a real program."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import firelane

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
BINARY = Path(os.environ.get("FIRELANE_BINARY", ROOT / "build" / "release" / "firelane"))
PLAIN = DATA / "gpt_plain.json.gz"
SLOW = DATA / "gpt_slowdata.json.gz"


def test_compare_gives_the_difference_in_parts_that_add_up() -> None:
    answer = firelane.compare(PLAIN, SLOW)
    parts = {row["part"]: row["change_ns"] for row in answer["parts"]}
    whole = parts.pop("all")
    assert whole == answer["step_after_ns"] - answer["step_before_ns"]
    assert sum(parts.values()) == whole
    assert answer["reasons"][0]["reason"].startswith("waiting for input")
    assert "slower" in str(answer)


def test_a_side_is_a_folder_a_pattern_or_a_list(tmp_path: Path) -> None:
    for run in range(2):
        (tmp_path / f"{run}.json.gz").symlink_to(PLAIN)
    assert firelane.compare(tmp_path, SLOW)["runs_before"] == 2
    assert firelane.compare(str(tmp_path / "*.json.gz"), [SLOW])["runs_before"] == 2
    with pytest.raises(firelane.TraceError, match="no trace here"):
        firelane.compare(str(tmp_path / "*.lane"), SLOW)


def test_a_comparison_is_a_document(tmp_path: Path) -> None:
    answer = firelane.compare(PLAIN, SLOW)
    text = answer.report()
    assert text is not None
    assert text.startswith("# Comparison of gpt\\_plain.json.gz with gpt\\_slowdata.json.gz\n\n**")
    assert "| waiting for input |" in text
    path = tmp_path / "comparison.md"
    assert answer.report(path) is None
    assert path.read_text() == text
    with pytest.raises(firelane.TraceError, match="exists"):
        answer.report(path)
    answer.report(path, force=True)
    with pytest.raises(firelane.TraceError, match=r"name it report\.html or report\.md"):
        answer.report(tmp_path / "comparison.pdf")


@pytest.mark.skipif(not (ROOT / "viewer/dist/report.html").exists(), reason="viewer/dist is not built (make viewer)")
def test_a_comparison_is_a_page_and_a_view_in_a_notebook(tmp_path: Path) -> None:
    answer = firelane.compare(PLAIN, SLOW)
    page = tmp_path / "comparison.html"
    answer.report(page)
    html = page.read_text()
    assert '"first_pane":"compare"' in html
    assert '"compare?before=0\\u0026after=1":{"json"' in html
    view = answer.view(height=300)
    assert repr(view) == f"firelane compare --view --before {PLAIN} --after {SLOW}"
    assert view._repr_html_().startswith('<iframe title="Firelane" sandbox="allow-scripts" width="100%" height="300"')
    with pytest.raises(ValueError, match="height"):
        answer.view(height=0)


def test_gate_holds_or_not_by_a_baseline_of_four() -> None:
    assert firelane.gate(PLAIN, baseline=[PLAIN] * 4)["status"] == "holds"
    assert firelane.gate(SLOW, baseline=[PLAIN] * 4)["status"] == "does not hold"
    assert firelane.gate(SLOW, baseline=PLAIN, limits={"step_time": "3%"})["status"] == "inconclusive"
    with pytest.raises(firelane.TraceError, match="write 3% or 25 ms"):
        firelane.gate(SLOW, baseline=PLAIN, limits={"step_time": "soon"})


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}",
        "FIRELANE_BINARY": str(BINARY),
    }


def test_the_fixture_under_real_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_speed.py").write_text(
        textwrap.dedent(f"""
            import pytest

            @pytest.mark.parametrize("time", range(4))
            def test_update(firelane_gate, time):
                firelane_gate({str(PLAIN)!r}, label="shared")

            def test_same(firelane_gate):
                firelane_gate({str(PLAIN)!r}, label="shared")

            def test_slower(firelane_gate):
                firelane_gate({str(SLOW)!r}, label="shared")

            def test_one_run(firelane_gate):
                firelane_gate({str(PLAIN)!r}, baseline={str(PLAIN)!r}, limits={{"step_time": "3%"}})
        """)
    )

    def pytest_there(*flags: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "firelane._pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-rs",
            *flags,
        ]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "5 skipped" in pytest_there("--firelane-update", "-k", "update or one")
    judged = pytest_there("-k", "not update")
    assert "1 failed, 1 passed, 1 skipped" in judged, judged
    assert "does not hold: Step" in judged
    assert "2 failed, 1 passed" in pytest_there("--firelane-inconclusive=fail", "-k", "not update")


def test_the_action_writes_the_summary_and_the_status(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "firelane").symlink_to(BINARY)

    def act(traces: Path, **inputs: str) -> tuple[int, str]:
        files = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "GITHUB_OUTPUT": str(tmp_path / "output")}
        given = {"BASELINE": "", "STORE": "store", "LABEL": "main", "LIMITS": "", "INCONCLUSIVE": "pass", **inputs}
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        env = {**environment(), **files, **given, "TRACES": str(traces), "PATH": path, "RUNNER_TEMP": str(tmp_path)}
        (tmp_path / "output").write_text("")
        done = subprocess.run([ROOT / "tools" / "gate_action.sh"], cwd=tmp_path, env=env, check=False)
        return done.returncode, (tmp_path / "output").read_text().strip()

    baseline = " ".join([str(PLAIN)] * 4)
    assert act(PLAIN, BASELINE=baseline) == (0, "status=holds")
    assert act(SLOW, BASELINE=baseline) == (3, "status=broken")
    assert act(SLOW, BASELINE=str(PLAIN), LIMITS="step_time=3%") == (0, "status=inconclusive")
    assert act(SLOW, BASELINE=str(PLAIN), LIMITS="step_time=3%", INCONCLUSIVE="fail") == (4, "status=inconclusive")
    assert act(SLOW)[1] == "status=failed"
    summary = (tmp_path / "summary.md").read_text()
    assert "does not hold: Step" in summary
    assert len(summary.encode()) < 1_000_000


PROGRAM = """
import quick_torch, sys
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(int(sys.argv[1]))])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    model(torch.randn(16, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_bench_takes_turns_and_compares(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    other = f"{sys.executable} train.py 24"
    flags = ["--runs", "1", "--steps", "8", "--recorded", "2", "--against", other, "--json"]
    command = [str(BINARY), "bench", *flags, "--", sys.executable, "train.py", "8"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split(" (")[0] for line in done.stderr.splitlines()] == [
        "firelane: run 1 of 2",
        "firelane: run 2 of 2",
    ]
    answer = firelane.compare(tmp_path / "firelane-bench" / "a1.lane", tmp_path / "firelane-bench" / "b1.lane")
    calls = {row["op"]: (row["calls_before"], row["calls_after"]) for row in answer["work"]}
    assert calls["aten::addmm"] == (8, 24)
