"""firelane.open: what it accepts, returns and rejects."""

import gzip
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import firelane


def test_opens_strings_and_path_objects(trace_file):
    for path in (trace_file, str(trace_file)):
        assert len(firelane.open(path).host_slices) == 4


def test_opens_gzip(trace_file):
    zipped = trace_file.with_suffix(".json.gz")
    zipped.write_bytes(gzip.compress(trace_file.read_bytes()))
    assert len(firelane.open(zipped).host_slices) == 4


def test_repr_summarizes_the_trace(trace, trace_file):
    assert repr(trace) == f"<firelane.Trace {str(trace_file)!r}: 4 host slices, 1 device slice, 1 step>"


def test_any_number_of_threads_gives_the_same_rows(gpt_full):
    one = firelane.open(gpt_full, threads=1).host_slices
    three = firelane.open(gpt_full, threads=3).host_slices
    assert len(one) == len(three) > 1000
    assert all(one[i] == three[i] for i in range(0, len(one), 97))


def test_a_missing_file_is_one_clear_line(tmp_path):
    missing = tmp_path / "nothing.json"
    with pytest.raises(firelane.TraceError, match=r"nothing\.json") as caught:
        firelane.open(missing)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a trace", b"\x1f\x8b\x08 broken gzip"])
def test_bad_files_raise_a_trace_error(tmp_path, content):
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    with pytest.raises(firelane.TraceError, match=r"bad\.json"):
        firelane.open(bad)


def test_a_directory_raises_a_trace_error(tmp_path):
    with pytest.raises(firelane.TraceError):
        firelane.open(tmp_path)


def test_a_truncated_file_opens_and_reports_it(tmp_path, trace_file):
    torn = tmp_path / "torn.json"
    torn.write_bytes(trace_file.read_bytes()[:-400])
    losses = list(firelane.open(torn).losses)
    assert [row["severity"] for row in losses if row["name"] == "trace.truncated"] == ["data_loss"]


def test_invalid_arguments_are_type_errors(trace_file):
    with pytest.raises(TypeError):
        firelane.open(trace_file, 4)
    with pytest.raises(TypeError):
        firelane.open(trace_file, threads=-1)
    with pytest.raises(TypeError):
        firelane.open(None)


def test_other_threads_run_while_a_trace_loads(gpt_full):
    opened = []
    threads = [
        threading.Thread(target=lambda: opened.append(len(firelane.open(gpt_full).host_slices))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 4 and len(set(opened)) == 1


def test_needs_no_torch_and_no_table_library(trace_file):
    program = f"""
import sys
import firelane
trace = firelane.open({str(trace_file)!r})
trace.host_slices._repr_html_(), trace.host_slices[0], trace.host_slices.__arrow_c_stream__()
print([name for name in ("torch", "numpy", "pyarrow", "pandas", "polars", "duckdb") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(firelane.__file__).parents[1])},
    )
    assert done.stdout == "[]\n"


def test_args_match_the_source(trace):
    names = [row["name"] for row in trace.host_slices]
    assert trace.args("host_slices", names.index("aten::mm")) == {
        "External id": 1,
        "Input Dims": [[2, 3], [3, 4]],
        "Sequence number": 4,
        "Ev Idx": 5,
    }
    assert trace.args("host_slices", names.index("ProfilerStep#1")) == {}
    assert trace.args("device_slices", 0)["grid"] == [4, 1, 1]
    assert trace.args("memory_events", 0)["Bytes"] == 512


def test_args_of_missing_rows_and_tables_are_rejected(trace):
    with pytest.raises(IndexError):
        trace.args("host_slices", len(trace.host_slices))
    with pytest.raises(ValueError, match="host_slices, device_slices"):
        trace.args("steps", 0)
