"""Hardware metrics of a program whose phases are known, through `firelane record --metrics` and the other verbs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import FIRELANE

HERE = Path(__file__).resolve().parent

# The mean of each metric over the samples that begin inside a phase's work on the GPU, or in its range on the host.
MEANS = """
select r.name as phase, t.name as metric, avg(c.value) as value, count(*) as samples
from host_slices r, counter_samples c join counter_tracks t on t.id = c.track
where r.name like 'phase %' and t.pid = 'GPU 0 Counters'
  and c.time_ns >= r.start_ns + 5000000 and c.time_ns < r.start_ns + r.duration_ns - 5000000
group by r.name, t.name
"""


def run(folder: Path, *words: str) -> str:
    done = subprocess.run([FIRELANE, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    if not FIRELANE:
        pytest.skip("the firelane binary is not built")
    folder = tmp_path_factory.mktemp("metrics")
    flags = ["--steps", "0", "--shapes", "--metrics", "--metric-interval", "100us", "-o", "run.lane"]
    said = run(folder, "record", *flags, "--", sys.executable, str(HERE / "metric_phases.py"), "80")
    refused = [line for line in said.splitlines() if "GPU metrics" in line and "no samples in the first" not in line]
    if refused:
        pytest.skip(refused[0])
    return folder


@pytest.fixture(scope="module")
def means(folder) -> dict[str, dict[str, float]]:
    rows = json.loads(run(folder, "sql", "run.lane", MEANS, "--json"))
    out: dict[str, dict[str, float]] = {}
    for row in rows["rows"]:
        out.setdefault(row["phase"].removeprefix("phase "), {})[row["metric"]] = row["value"]
    return out


def share(means: dict[str, dict[str, float]], phase: str, *begins: str) -> float:
    return sum(value for name, value in means[phase].items() if name.startswith(begins))


def test_metrics_say_what_each_phase_did(means):
    tensor, dram, sm = (
        "sm__pipe_tensor",
        ("dram__",),
        "sm__cycles_active",
    )
    assert share(means, "matmul", tensor) > 40 and share(means, "add", tensor) < 5
    assert share(means, "add", *dram) > 60 and share(means, "idle", *dram) < 5
    assert share(means, "matmul", sm) > 80 and share(means, "idle", sm) < 5
    assert share(means, "from host", "pcie__") > 5 * share(means, "matmul", "pcie__")


def test_the_roofline_knows_what_bounds_the_addition(folder):
    table = json.loads(run(folder, "roofline", "run.lane", "--json"))
    rows = {row["op"]: row for row in table["roofline"]}
    assert (rows["aten::add"]["bound"], rows["aten::add"]["bound_from"]) == ("memory", "measured")


def test_the_chrome_trace_has_them_as_kineto_writes_them(folder):
    run(folder, "export", "run.lane", "--to", "chrome", "-o", "run.json")
    events = json.loads((folder / "run.json").read_text())["traceEvents"]
    counters = [event for event in events if event.get("cat") == "hardware_counters"]
    assert counters and {event["pid"] for event in counters} == {"GPU 0 Counters"}
