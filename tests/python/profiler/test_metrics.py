"""The GPU's hardware metrics as an option of every front. What CUPTI does with it: src/record/cupti/metrics_test.cc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

import firelane
from firelane import _record
from firelane._metrics import metric_options

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build/release/firelane"))
needs_command = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")


def test_true_is_the_default_set_and_a_list_names_metrics():
    assert metric_options(True) == {"metrics": True, "metric_names": "", "metric_interval_ms": 1.0}
    assert metric_options(["a__b.avg", "c__d.sum"], 0.1)["metric_names"] == "a__b.avg,c__d.sum"
    assert metric_options("a__b.avg, c__d.sum")["metric_names"] == "a__b.avg,c__d.sum"
    assert not metric_options(False)["metrics"] and not metric_options([])["metrics"]


@pytest.mark.parametrize(
    "metrics, interval_ms, words",
    [
        (["sm active"], 1, "not one of CUPTI's names"),
        (["sm__cycles_active"], 1, "not one of CUPTI's names"),
        (9400, 1, r"a place for Prometheus is always_on\(prometheus=9400\)"),
        (":9400", 1, r"a place for Prometheus is always_on\(prometheus=9400\)"),
        ("/run/me.sock", 1, r"a place for Prometheus is always_on\(prometheus='/run/me.sock'\)"),
        (True, 0, "metric_interval_ms"),
        (True, 5000, "metric_interval_ms"),
        (True, float("nan"), "metric_interval_ms: between 0.02 and 1000, not nan"),
    ],
)
def test_what_cannot_be_sampled_is_refused_when_it_is_asked_for(metrics, interval_ms, words):
    with pytest.raises(ValueError, match=words):
        firelane.profile(metrics=metrics, metric_interval_ms=interval_ms)
    with pytest.raises(ValueError, match=words):
        firelane.always_on("nowhere", metrics=metrics, metric_interval_ms=interval_ms)


@pytest.mark.parametrize("interval_ms, text", [(True, "True"), (None, "None"), ("1", "'1'")])
def test_an_interval_that_is_no_number_was_named_1_or_an_error_of_pythons(interval_ms, text):
    with pytest.raises(ValueError, match=f"metric_interval_ms: between 0.02 and 1000, not {text}$"):
        firelane.profile(metrics=True, metric_interval_ms=interval_ms)
    with pytest.raises(ValueError, match=f"metric_interval_ms: between 0.02 and 1000, not {text}$"):
        firelane.always_on("nowhere", metrics=True, metric_interval_ms=interval_ms)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_is_one_line_and_the_rest_is_recorded():
    with pytest.warns(RuntimeWarning, match="GPU metrics: no NVIDIA GPU"), firelane.profile(metrics=True) as prof:
        torch.ones(3) + 1
    assert [loss.reason for loss in prof.losses if "metrics" in loss.reason]
    assert prof.trace.sql("select 1 from host_slices where name = 'aten::add'")


def plan_of(folder: Path, *flags: str) -> dict:
    code = "import os; print(os.environ['FIRELANE_RECORD'])"
    done = subprocess.run(
        [FIRELANE, "record", *flags, "--", sys.executable, "-S", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["options"]


@needs_command
def test_the_command_takes_it_with_and_without_a_list(tmp_path):
    assert plan_of(tmp_path)["metrics"] is False
    alone = plan_of(tmp_path, "--metrics")
    assert (alone["metrics"], alone["metric_names"], alone["metric_interval_ms"]) == (True, "", 1)
    assert plan_of(tmp_path, "--metrics", "a__b.avg")["metric_names"] == "a__b.avg"
    assert plan_of(tmp_path, "--metrics=a__b.avg", "--metrics=c__d.sum,e__f.max")["metric_names"] == (
        "a__b.avg,c__d.sum,e__f.max"  # only the last list was taken
    )
    assert plan_of(tmp_path, "--metrics", "a__b.avg", "--metrics", "--metrics", "c__d.sum")["metric_names"] == (
        "a__b.avg,c__d.sum"
    )
    listed = plan_of(tmp_path, "--metrics=a__b.avg,c__d.sum", "--metric-interval", "50us")
    assert (listed["metric_names"], listed["metric_interval_ms"]) == ("a__b.avg,c__d.sum", 0.05)


@needs_command
@pytest.mark.parametrize(
    "flags, words",
    [
        (["--metrics", "9400"], "--prometheus 9400"),
        (["--metrics", "/run/me.sock"], "--prometheus /run/me.sock"),
        (["--metrics=9400"], "--prometheus 9400"),
        (["--metrics", ":9400"], "--prometheus 9400"),
        (["--metrics", "localhost:9400"], "--prometheus 9400"),
        (["--metrics", "/tmp/x"], "--prometheus /tmp/x"),
        (["--metrics", "all"], "'all' is not one of CUPTI's metrics"),
        (["--metric-interval", "2ms"], "--metric-interval requires --metrics"),
        (["--metrics", "--metric-interval", "nanms"], "between 20us and 1000ms"),
        (["--metrics=,"], "a list without names; --metrics alone records the default set"),
        (["--metrics=sm"], "'sm' is not one of CUPTI's metrics"),
        (["--metrics", "--metric-interval", "1s"], "between 20us and 1000ms"),
        (["--metrics", "--metric-interval", "-1ms"], "between 20us and 1000ms"),
    ],
)
def test_the_command_refuses_what_is_meant_for_another_flag(flags, words):
    done = subprocess.run([FIRELANE, "record", *flags, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_the_recorder_itself_took_any_interval():
    for interval_ms in (0, -1, 1e9, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"metric_interval_ms: between 0\.02 and 1000, not"):
            _record.RecordOptions(metrics=True, metric_interval_ms=interval_ms)
    assert _record.RecordOptions(metrics=True, metric_interval_ms=0.02).metric_interval_ms == 0.02
