"""Trace.sql and Trace.export."""

import gzip
import json
import os
import signal
import threading
import time

import polars as pl
import pyarrow as pa
import pytest

import firelane


def test_sql_returns_a_table(trace):
    table = trace.sql("select name, duration_ns / 1000.0 as us, parent from host_slices where kind = 'op' order by us")
    assert [*table] == [
        {"name": "aten::<b>&co", "us": 5.0, "parent": 0},
        {"name": "aten::mm", "us": 20.0, "parent": 0},
    ]
    assert pa.table(table).schema.types == [pa.large_string(), pa.float64(), pa.int64()]
    assert pl.DataFrame(table)["us"].sum() == 25


def test_sql_names_every_column(trace):
    assert trace.sql("select 1 as a, 2 as a, null as b").column_names == ["a", "a_2", "b"]
    assert [*trace.sql("select 1 as a, 2 as a, null as b")] == [{"a": 1, "a_2": 2, "b": None}]


def test_sql_without_rows_is_an_empty_table(trace):
    table = trace.sql("select name from host_slices where 0")
    assert (len(table), table.column_names) == (0, ["name"])
    assert pa.table(table).num_rows == 0


def test_sql_returns_the_rows_of_the_last_statement(trace):
    assert [*trace.sql("select 1 as a; select 2 as b;")] == [{"b": 2}]


def test_bad_sql_is_a_trace_error(trace):
    with pytest.raises(firelane.TraceError, match="nowhere"):
        trace.sql("select * from nowhere")
    with pytest.raises(firelane.TraceError):
        trace.sql("delete from host_slices")


def test_a_long_query_can_be_interrupted(trace):
    asking = threading.Event()

    def interrupt():
        asking.wait()
        time.sleep(0.3)  # by now the query, which never ends, is running
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts background jobs with SIGINT ignored, and Python keeps it that way.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            asking.set()
            trace.sql("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n")
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert [*trace.sql("select 1 as one")] == [{"one": 1}]


def test_a_chrome_export_opens_again(trace, tmp_path):
    trace.export(tmp_path / "again.json.gz", to="chrome")
    again = firelane.open(tmp_path / "again.json.gz")
    assert [*again.host_slices] == [*trace.host_slices]
    assert [*again.kernels()] == [*trace.kernels()]


@pytest.mark.parametrize("to", ["chrome", "perfetto", "speedscope", "stacks", "json"])
def test_every_format_is_written(trace, tmp_path, to):
    path = tmp_path / "out"
    trace.export(path, to=to)
    assert path.exists() and (to == "stacks" or path.stat().st_size > 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "small.json"]
    if to in ("chrome", "speedscope", "json"):
        json.loads(path.read_text())


def test_a_table_is_written_as_csv_and_compressed_if_the_name_says_so(trace, tmp_path):
    trace.export(tmp_path / "steps.csv.gz", to="csv", table="steps")
    assert gzip.decompress((tmp_path / "steps.csv.gz").read_bytes()).decode().splitlines()[0].startswith("id,number,")


def test_an_existing_file_is_replaced_only_with_force(trace, tmp_path):
    path = tmp_path / "out.json"
    path.write_text("mine")
    with pytest.raises(firelane.TraceError, match="force=True"):
        trace.export(path, to="chrome")
    assert path.read_text() == "mine"
    trace.export(path, to="chrome", force=True)
    assert path.read_text() != "mine"


def test_invalid_exports_are_rejected(trace, tmp_path):
    with pytest.raises(ValueError, match="perfetto"):
        trace.export(tmp_path / "x", to="pdf")
    with pytest.raises(ValueError, match="table"):
        trace.export(tmp_path / "x", to="csv")
    with pytest.raises(ValueError, match="moons"):
        trace.export(tmp_path / "x", to="csv", table="moons")
    with pytest.raises(firelane.TraceError, match="cannot be written"):
        trace.export(tmp_path / "no" / "folder" / "x", to="json")
    assert [p.name for p in tmp_path.iterdir()] == ["small.json"]
