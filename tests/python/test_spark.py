"""firelane.spark against `firelane ranks` on the same traces, byte for byte. Skipped where there is no Spark."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pyspark_sql = pytest.importorskip("pyspark.sql", reason="no pyspark here; pip install pyspark pyarrow pandas")
if shutil.which("java") is None:
    pytest.skip("no Java for Spark here", allow_module_level=True)

import firelane.spark  # noqa: E402  (after the reasons to skip)

ROOT = Path(__file__).resolve().parents[2]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build" / "release" / "firelane"))


@pytest.fixture(scope="module")
def spark():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = os.environ.get("FIRELANE_SPARK_MASTER", "local[2]")  # also spark://host:7077
    builder = pyspark_sql.SparkSession.builder.master(master).appName("firelane tests")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def traces(tmp_path):
    """Four ranks that reduce ten times; the third is late each time."""
    for rank in range(4):
        events = []
        for step in range(10):
            start = 1000 * step + (300 if rank == 2 else 0)
            args = {
                "stream": 20,
                "correlation": step,
                "Collective name": "allreduce",
                "In msg nelems": 4096,
                "Out msg nelems": 4096,
                "dtype": "Float",
                "Group size": 4,
                "Process Group Name": "0",
                "Process Group Description": "default_pg",
                "Process Group Ranks": "[0, 1, 2, 3]",
                "Seq": step,
            }
            step_slice = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1}
            events.append(step_slice | {"ts": 1000 * step, "dur": 1000})
            kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0}
            events.append(kernel | {"tid": 20, "ts": start + 100, "dur": 1000 * step + 500 - start, "args": args})
        trace = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 4}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    return tmp_path


def native(*words):
    return subprocess.run([FIRELANE, "ranks", *map(str, words)], capture_output=True, check=True).stdout


@pytest.mark.parametrize("flags", [["--json"], [], ["--markdown", "--rows", "3"]])
def test_the_answer_is_that_of_one_machine(spark, traces, flags):
    assert firelane.spark.answer(spark, [traces], flags, command=FIRELANE) == native(traces, *flags)


def test_a_task_maps_several_traces_also_where_one_of_them_is_none(spark, traces, monkeypatch, capfd):
    monkeypatch.setattr(firelane.spark, "_TASKS_PER_CORE", 1)
    expected = native(traces, "--json")
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE) == expected
    (traces / "config.json").write_text("not a trace")
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE) == expected
    assert "left out: " in capfd.readouterr().err


def test_files_are_dealt_out_so_that_tasks_have_about_as_many_bytes():
    sizes = {"a": 900, "b": 500, "c": 400, "d": 100, "e": 0, "f": 0}
    dealt = firelane.spark._deal(sizes, 3)
    assert [sum(sizes[file] for file in files) for files in dealt] == [900, 500, 500]
    assert sorted(file for files in dealt for file in files) == sorted(sizes)


@pytest.mark.parametrize("few_files", [0, 64])  # on the executors' disks at once, or when some are too large
def test_parts_too_large_to_collect_come_one_partition_at_a_time(spark, traces, monkeypatch, few_files):
    expected = native(traces, "--json")
    monkeypatch.setattr(firelane.spark, "_FEW_FILES", few_files)
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE) == expected
    monkeypatch.setattr(firelane.spark, "_MOST_COLLECTED", 0)
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE) == expected


def matched_on_executors(monkeypatch):
    """The words of every `ranks reduce` that the driver runs from now on."""
    reduces = []
    run = subprocess.run

    def watched(words, **how):
        if list(words[1:3]) == ["ranks", "reduce"]:
            reduces.append(list(words))
        return run(words, **how)

    monkeypatch.setattr(firelane.spark.subprocess, "run", watched)
    return reduces


def test_a_few_large_parts_were_not_shuffled_whatever_their_size(spark, traces, monkeypatch):
    """Of up to 64 files nobody looked at the size of the parts."""
    size = 0
    for trace in sorted(traces.iterdir()):
        native("map", trace, "-o", traces / "one.part", "--force")
        size += (traces / "one.part").stat().st_size
    (traces / "one.part").unlink()
    expected = native(traces, "--json")
    reduces = matched_on_executors(monkeypatch)
    for above in (size - 1, size):
        given = firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE, shuffle_bytes=above)
        assert given == expected
    assert ["--matches" in words for words in reduces] == [True, False]


def test_collectives_that_executors_matched_give_the_same_answer(spark, traces):
    expected = native(traces, "--json")
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE, shuffle_bytes=0) == expected
    # A rank without one of the collectives, and one that calls another operation as number 5.
    first = json.loads((traces / "rank0.json").read_text())
    first["traceEvents"] = [each for each in first["traceEvents"] if each.get("args", {}).get("Seq") != 3]
    (traces / "rank0.json").write_text(json.dumps(first))
    second = (traces / "rank1.json").read_text().replace('"Seq": 5', '"Seq": 5, "In msg nelems": 8')
    (traces / "rank1.json").write_text(second)
    expected = native(traces, "--json")
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE, shuffle_bytes=0) == expected


def test_analyze_gives_the_json_as_a_dictionary(spark, traces):
    found = firelane.spark.analyze(spark, [traces / f"rank{rank}.json" for rank in range(4)], command=FIRELANE)
    assert found == json.loads(native(*(traces / f"rank{rank}.json" for rank in range(4)), "--json"))


def test_what_is_no_trace_is_left_out_of_a_folder_and_refused_by_name(spark, traces, capfd):
    expected = native(traces, "--json")
    broken = traces / "config.json"
    broken.write_text("not a trace")
    assert firelane.spark.answer(spark, [traces], ["--json"], command=FIRELANE) == expected
    assert "left out: " in capfd.readouterr().err
    with pytest.raises(RuntimeError, match=r"config\.json"):
        firelane.spark.answer(spark, [broken], command=FIRELANE)
