"""The tables as seen by pyarrow, polars, pandas, DuckDB and plain Python."""

import gc
import threading

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import firelane

TABLES = [
    "lanes",
    "host_slices",
    "op_details",
    "data_dependencies",
    "call_details",
    "device_slices",
    "kernel_details",
    "copy_details",
    "sync_details",
    "comm_details",
    "memory_events",
    "allocator_events",
    "allocator_segments",
    "allocator_blocks",
    "instants",
    "counter_tracks",
    "counter_samples",
    "flows",
    "steps",
    "losses",
]
HOST_NAMES = ["ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "aten::<b>&co"]


def address(table: firelane.Table, column: str) -> int:
    return pa.table(table).column(column).chunk(0).buffers()[1].address


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_valid_arrow_with_the_columns_it_names(gpt_full, name):
    table = getattr(firelane.open(gpt_full), name)
    arrow = pa.table(table)
    arrow.validate(full=True)
    assert table.name == name
    assert arrow.column_names == table.column_names
    assert arrow.num_rows == len(table)
    assert pa.schema(table) == arrow.schema


def test_pyarrow_reads_rows_nulls_and_strings(trace):
    arrow = pa.table(trace.host_slices)
    assert arrow.column("name").to_pylist() == HOST_NAMES
    assert arrow.column("kind").to_pylist() == ["annotation", "op", "runtime", "op"]
    assert arrow.column("start_ns").to_pylist() == [0, 1000, 5000, 30000]
    assert arrow.column("parent").to_pylist() == [None, 0, 1, 0]
    assert arrow.column("parent").null_count == 1
    assert arrow.schema.field("name").type == pa.dictionary(pa.int32(), pa.large_string())


def test_polars_reads_rows_nulls_and_strings(trace):
    frame = pl.DataFrame(trace.host_slices)
    assert frame["name"].to_list() == HOST_NAMES
    assert frame["parent"].to_list() == [None, 0, 1, 0]
    busy = frame.filter(pl.col("kind") == "op").group_by("name").agg(pl.col("duration_ns").sum()).sort("duration_ns")
    assert busy.rows() == [("aten::<b>&co", 5000), ("aten::mm", 20000)]


def test_pandas_reads_rows_nulls_and_strings(trace):
    frame = pd.DataFrame.from_arrow(trace.host_slices)
    assert list(frame["name"]) == HOST_NAMES
    assert frame["parent"].isna().tolist() == [True, False, False, False]
    busy = frame[frame["kind"] == "op"].groupby("name", observed=True)["duration_ns"].sum()
    assert busy.to_dict() == {"aten::mm": 20000, "aten::<b>&co": 5000}


def test_duckdb_joins_tables(trace):
    device, host = trace.device_slices, trace.host_slices  # noqa: F841 (DuckDB finds them by name)
    rows = duckdb.sql("""
        select d.name, launch.name, op.name, d.duration_ns
        from device d join host launch on d.launch = launch.id join host op on d.op = op.id""").fetchall()
    assert rows == [("gemm", "cudaLaunchKernel", "aten::mm", 18000)]


def test_details_counters_and_memory_are_available(trace):
    kernel = trace.kernel_details[0]
    assert (kernel["grid_x"], kernel["block_x"], kernel["registers"]) == (4, 128, None)
    assert trace.memory_events[0]["bytes"] == 512
    assert trace.counter_samples[0]["value"] == 2.5
    assert trace.counter_tracks[0]["name"] == "GPU 0 power"
    assert trace.steps[0] == {"id": 0, "number": 1, "slice": 0, "start_ns": 0, "duration_ns": 50000}


def test_columns_match_sql(gpt_full):
    trace = firelane.open(gpt_full)
    for name in TABLES:
        rows = getattr(trace, name)
        answer = trace.sql(f"select * from {name}" + (" where count > 0" if name == "losses" else ""))
        own = {"host_begin", "host_end", "device_begin", "device_end", "pid_text", "tid_text"}
        shared = [column for column in rows.column_names if column not in own]
        assert set(shared) <= set(answer.column_names), name
        arrow, sql = pa.table(rows), pa.table(answer)
        for column in shared:
            if column in ("pid", "tid"):  # numbers here, numbers and strings in SQL
                continue
            said = sql.column(column)
            if arrow.schema.field(column).type == pa.float32():
                said = said.cast(pa.float32())
            assert arrow.column(column).to_pylist() == said.to_pylist(), f"{name}.{column}"


def test_rows_are_dicts_of_plain_values(trace):
    assert trace.host_slices[1] == {
        "id": 1,
        "lane": 0,
        "start_ns": 1000,
        "duration_ns": 20000,
        "name": "aten::mm",
        "category": "cpu_op",
        "kind": "op",
        "role": None,
        "parent": 0,
        "depth": 1,
        "detail": trace.host_slices[1]["detail"],
        "call_line": None,
    }
    assert trace.host_slices[-1] == trace.host_slices[3]
    assert [row["name"] for row in trace.host_slices] == HOST_NAMES
    for outside in (4, -5):
        with pytest.raises(IndexError):
            trace.host_slices[outside]


def test_two_exports_share_memory(trace_file):
    trace = firelane.open(trace_file)
    for column in ("start_ns", "duration_ns", "parent", "name", "kind"):
        assert address(trace.host_slices, column) == address(trace.host_slices, column), column


def test_names_of_all_tables_share_one_dictionary(trace):
    def dictionary_address(table):
        return pa.table(table).column("name").chunk(0).dictionary.buffers()[2].address

    assert dictionary_address(trace.host_slices) == dictionary_address(trace.device_slices)


def test_columns_outlive_the_trace(gpt_full):
    trace = firelane.open(gpt_full)
    expected = [trace.host_slices[i] for i in range(0, len(trace.host_slices), 50)]
    arrow = pa.table(trace.host_slices)
    del trace
    gc.collect()
    fillers = [firelane.open(gpt_full) for _ in range(2)]  # would reuse the memory if it had been freed
    del fillers
    assert arrow.slice(0).take(list(range(0, arrow.num_rows, 50))).to_pylist() == expected


def test_an_unread_stream_is_released(trace_file):
    for _ in range(3):
        capsule = firelane.open(trace_file).host_slices.__arrow_c_stream__()
        del capsule
        gc.collect()


def test_a_table_outlives_its_trace(trace_file):
    table = firelane.open(trace_file).host_slices
    gc.collect()
    assert table[1]["name"] == "aten::mm"


def test_threads_may_export_one_table_at_once(gpt_full):
    trace = firelane.open(gpt_full)
    sums = []
    threads = [
        threading.Thread(target=lambda: sums.append(pl.DataFrame(trace.host_slices)["duration_ns"].sum()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sums) == 8 and len(set(sums)) == 1


def test_html_is_escaped(trace):
    html = trace.host_slices._repr_html_()
    assert "<td>aten::&lt;b&gt;&amp;co</td>" in html
    assert "<b>" not in html


def test_html_shows_only_the_first_rows(gpt_full):
    table = firelane.open(gpt_full).host_slices
    html = table._repr_html_()
    assert html.count("<tr>") == 11
    assert f"{len(table)} rows" in html


def test_repr_is_one_line(trace):
    assert repr(trace.steps) == "<firelane.Table steps: 1 rows, 5 columns>"
