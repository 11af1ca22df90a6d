"""Results of the analyses: the same numbers as on the command line, as tables and as text."""

import json
import subprocess
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import firelane

BINARY = Path(__file__).resolve().parents[2] / "build" / "release" / "firelane"


def command_line(verb, path, *options):
    return subprocess.run([BINARY, verb, path, *options], check=True, capture_output=True, text=True).stdout


needs_binary = pytest.mark.skipif(not BINARY.exists(), reason="build/release/firelane is not built")


def test_info_is_a_dict_with_the_command_lines_names(trace, trace_file):
    assert trace.info["path"] == str(trace_file)
    assert trace.info["step_count"] == 1
    assert {"side": "device", "kind": "kernel", "count": 1} in trace.info["events"]


def test_ops_have_self_and_total_times(trace):
    rows = {row["name"]: row for row in trace.ops()}
    assert rows["aten::mm"]["cpu_time_total_ns"] == 20000
    assert rows["aten::mm"]["self_cpu_time_total_ns"] == 16000
    assert rows["aten::mm"]["self_device_time_total_ns"] == 18000
    assert rows["aten::mm"]["is_user_annotation"] is False
    assert rows["aten::mm"]["stack"] is None


def test_ops_sort_group_and_limit(trace):
    def names(**options):
        return [row["name"] for row in trace.ops(**options)]

    assert names(sort_by="cpu_time_total", side="host")[:3] == ["ProfilerStep*", "aten::mm", "aten::<b>&co"]
    assert names(sort_by="cpu_time_total", rows=1) == ["ProfilerStep*"]
    assert names(side="device") == ["gemm"]
    shapes = {row["name"]: row["input_shapes"] for row in trace.ops(group_by_input_shape=True)}
    assert shapes["aten::mm"] == "[[2, 3], [3, 4]]"


def test_invalid_options_are_rejected_with_the_valid_choices(trace):
    with pytest.raises(ValueError, match="sort"):
        trace.ops(sort_by="beauty")
    with pytest.raises(ValueError, match="both, host, device"):
        trace.ops(side="moon")
    with pytest.raises(ValueError, match="total"):
        trace.kernels(sort_by="beauty")
    with pytest.raises(TypeError):
        trace.ops("cpu_time")


def test_kernels_steps_and_lanes(trace):
    (kernel,) = trace.kernels()
    assert (kernel["name"], kernel["calls"], kernel["total_ns"], kernel["grid"]) == ("gemm", 1, 18000, "4x1x1")
    (step,) = trace.steps_summary()
    assert (step["step"], step["duration_ns"], step["device_busy_ns"]) == (1, 50000, 18000)
    busy = {row["kind"]: row["busy_ns"] for row in trace.lanes_summary()}
    assert busy["thread"] == 50000 and busy["stream"] == 18000


def test_results_are_arrow_tables(gpt_full):
    trace = firelane.open(gpt_full)
    for table in (trace.ops(), trace.kernels(group_by_op=True), trace.steps_summary(), trace.lanes_summary()):
        arrow = pa.table(table)
        arrow.validate(full=True)
        assert arrow.num_rows == len(table) > 0
        assert len(pl.DataFrame(table)) == len(pd.DataFrame.from_arrow(table)) == len(table)
    ops = pl.DataFrame(trace.ops())
    assert ops["is_user_annotation"].dtype == pl.Boolean
    assert ops["self_cpu_percent"].sum() == pytest.approx(100)


def test_results_outlive_their_trace(gpt_full):
    assert "aten::" in str(firelane.open(gpt_full).ops())


@needs_binary
@pytest.mark.parametrize(
    "options", [{}, {"sort_by": "self_cuda_time_total", "rows": 7}, {"group_by_input_shape": True}]
)
def test_printed_ops_match_the_command_line(gpt_full, options):
    flags = []
    for name, value in options.items():
        flags += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
    assert str(firelane.open(gpt_full).ops(**options)) == command_line("ops", gpt_full, *flags)


@needs_binary
def test_rows_match_the_command_lines_json(gpt_full):
    trace = firelane.open(gpt_full)
    assert trace.info == json.loads(command_line("info", gpt_full, "--json"))
    assert list(trace.ops()) == json.loads(command_line("ops", gpt_full, "--json"))["rows"]
    assert list(trace.kernels()) == json.loads(command_line("kernels", gpt_full, "--json"))["kernels"]
    assert list(trace.steps_summary()) == json.loads(command_line("steps", gpt_full, "--json"))["steps"]


def test_html_is_formatted_for_people_and_escaped(trace):
    html = trace.ops()._repr_html_()
    assert "<th>Self CPU</th>" in html
    assert "<td>16.000 us</td>" in html
    assert "<td>aten::&lt;b&gt;&amp;co</td>" in html


def test_the_analyses_are_tables_too(gpt_full):
    trace = firelane.open(gpt_full)
    tables = [
        trace.roofline(),
        trace.roofline(table="utilization"),
        trace.fusion(),
        trace.modules(),
        trace.modules(table="phases"),
        trace.modules(by_type=True),
        trace.memory(),
        trace.memory(table="curve"),
        trace.memory(table="at_peak"),
        trace.input(),
        trace.input(table="transfers"),
    ]
    for table in tables:
        assert pa.table(table).num_rows == len(table) > 0
    device_ns = sum(row["device_ns"] for row in trace.modules(table="phases"))
    assert device_ns == sum(row["total_ns"] for row in trace.kernels())
    assert "FLOPs utilization" in str(trace.roofline())
    assert trace.cost(price_per_hour=3.5)["price_per_step"] > 0
    assert len(trace.inference()) == 0
    with pytest.raises(ValueError, match="devices, at_peak"):
        trace.memory(table="moon")


@needs_binary
def test_rows_of_the_analyses_match_the_command_lines_json(gpt_full):
    trace = firelane.open(gpt_full)
    assert list(trace.fusion()) == json.loads(command_line("fusion", gpt_full, "--json"))["chains"]
    assert list(trace.modules()) == json.loads(command_line("modules", gpt_full, "--json"))["modules"]
    assert list(trace.roofline()) == json.loads(command_line("roofline", gpt_full, "--json"))["roofline"]
    assert list(trace.memory(table="owners")) == json.loads(command_line("memory", gpt_full, "--json"))["owners"]
    assert list(trace.input()) == json.loads(command_line("input", gpt_full, "--json"))["steps"]


def test_the_verdict_is_text_table_and_dict(gpt_full):
    trace = firelane.open(gpt_full)
    findings = trace.diagnose()
    assert findings[0]["id"] == "launch-overhead"
    assert str(findings).startswith("overhead-bound")
    verdict = trace.diagnosis
    assert verdict["limit"] == "overhead" and not verdict["healthy"]
    assert [finding["id"] for finding in verdict["findings"]] == [row["id"] for row in findings]
    assert verdict["findings"][0]["evidence"]["ranges"]
    assert verdict["step"]["step_ns"] < verdict["step"]["recorded_ns"]


@needs_binary
def test_the_report_matches_the_command_line(gpt_full):
    assert firelane.open(gpt_full).report() == command_line("report", gpt_full, "-o", "-")


def test_the_numbers_behind_the_verdict_add_up(gpt_full):
    trace = firelane.open(gpt_full)
    for side in ("device", "host"):
        assert sum(row["share_percent"] for row in trace.breakdown() if row["side"] == side) == pytest.approx(100)
    assert len(trace.idle()) > 100 and len(trace.launches()) > 3 and len(trace.syncs()) == 3
    assert len(trace.critical_path()) > 100
    assert trace.whatif()["gain_ns"] == 0
    assert trace.whatif(host=0.5)["gain_ns"] > 0
