"""firelane.ranks, its two halves, and the published what-if."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

import firelane
from firelane import _ranks
from firelane._trace import _replay

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "tests" / "data" / "ranks"
SHARED = ROOT.parent / "shared" / "traces" / "other"
BINARY = Path(os.environ.get("FIRELANE_BINARY", ROOT / "build" / "release" / "firelane"))


def shared(name: str) -> Path:
    for folder in (SHARED, ROOT.parents[1] / "shared" / "traces" / "other"):
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"{name} is not beside this checkout (../shared/traces/other)")


def test_the_planted_rank_is_named_with_its_cause() -> None:
    job = firelane.ranks(PARTS)
    assert job["stragglers"][0]["rank"] == 2
    assert job["stragglers"][0]["cause"] == "slower kernels"
    assert job["matched_percent"] == 100
    assert "Rank 2" in str(job)
    parts = ("compute_ns", "wait_ns", "transfer_ns", "unmatched_ns", "copy_ns", "input_ns", "host_ns")
    for row in job["ranks"]:
        assert abs(sum(row[part] for part in parts) - row["step_ns"]) <= len(parts)


def test_map_and_reduce_give_what_the_command_gives(tmp_path: Path) -> None:
    parts = [path.read_bytes() for path in sorted(PARTS.glob("*.part"))]
    there = _ranks.reduce(reversed(parts))
    done = subprocess.run([BINARY, "ranks", "reduce", PARTS, "--json"], capture_output=True, check=True)
    assert there == json.loads(done.stdout)


def test_the_peak_between_hosts_can_be_given_as_on_the_command_line() -> None:
    done = subprocess.run(
        [BINARY, "ranks", PARTS, "--json", "--link-gb-s", "50"], capture_output=True, check=True, text=True
    )
    job = firelane.ranks(PARTS, link_gb_s=50)
    assert job == json.loads(done.stdout)
    assert job != firelane.ranks(PARTS)


def test_who_knows_which_ranks_share_a_machine_can_say_so(tmp_path: Path) -> None:
    # The parts name their hosts: what a trace says comes first.
    assert firelane.ranks(PARTS, ranks_per_host=4) == firelane.ranks(PARTS)
    for rank in range(2):
        copy = tmp_path / f"rank{rank}.json.gz"
        copy.write_bytes((ROOT / "tests" / "data" / "mm64.json.gz").read_bytes())
    assert firelane.ranks(tmp_path)["host_count"] is None
    assert firelane.ranks(tmp_path, ranks_per_host=2)["host_count"] == 1
    parts = [_ranks.map_trace(path) for path in sorted(tmp_path.iterdir())]
    assert _ranks.reduce(parts, ranks_per_host=1)["host_count"] == 2


def test_what_cannot_be_a_job_is_one_line(tmp_path: Path) -> None:
    part = (PARTS / "rank0.part").read_bytes()
    with pytest.raises(firelane.TraceError, match="cut after 100 bytes"):
        _ranks.reduce([part[:100]])
    with pytest.raises(firelane.TraceError, match="rank 0 twice"):
        _ranks.reduce([part, part])
    with pytest.raises(firelane.TraceError, match="no trace in this folder"):
        firelane.ranks(tmp_path)


def test_a_job_in_a_store_of_fsspec_gives_what_the_same_files_give_here(tmp_path: Path) -> None:
    store = pytest.importorskip("fsspec").filesystem("memory")
    for part in PARTS.glob("*.part"):
        store.pipe_file(f"/job/{part.name}", part.read_bytes())
    try:
        assert firelane.ranks("memory://job") == firelane.ranks(PARTS)
        assert firelane.ranks("memory://job/rank*.part")["rank_count"] == 4
        here = firelane.ranks([PARTS / "rank0.part", "memory://job/rank2.part"])
        assert [row["rank"] for row in here["ranks"]] == [0, 2]
        with pytest.raises(firelane.TraceError, match="memory://job/none: no such file"):
            firelane.ranks("memory://job/none")
        with pytest.raises(firelane.TraceError, match="nosuch"):
            firelane.ranks("nosuch://job")
        trace = ROOT / "tests" / "data" / "mm64.json.gz"
        store.pipe_file("/traces/rank3.json.gz", trace.read_bytes())
        assert firelane.ranks("memory://traces/")["ranks"][0]["path"] == "memory:///traces/rank3.json.gz"
    finally:
        store.rm("/", recursive=True)


def train_as_rank(rank: int, folder: str) -> None:
    import torch
    import torch.distributed as dist
    from torch.profiler import profile, schedule

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)

    def save(prof: profile) -> None:
        prof.export_chrome_trace(f"{folder}/rank{rank}.json")

    began = []
    with profile(schedule=schedule(wait=1, warmup=1, active=8, repeat=1), on_trace_ready=save) as prof:
        for _ in range(11):
            x = torch.ones(300, 300) @ torch.ones(300, 300)
            if rank == 1:
                time.sleep(0.05)
            began.append(time.perf_counter())
            dist.all_reduce(x)
            prof.step()
    Path(f"{folder}/began{rank}.txt").write_text(json.dumps(began[2:10]))
    dist.barrier()  # neither closes its connections while the other still reads from them
    dist.destroy_process_group()


def test_real_ranks_of_gloo_are_matched_and_the_slow_one_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch.distributed")
    from torch.multiprocessing import start_processes

    start_processes(train_as_rank, args=(str(tmp_path),), nprocs=2, start_method="fork")
    job = firelane.ranks(sorted(tmp_path.glob("rank*.json")))
    assert job["rank_count"] == 2
    assert job["matched_percent"] > 80
    began = [json.loads((tmp_path / f"began{rank}.txt").read_text()) for rank in (0, 1)]
    if sum(second - first for first, second in zip(*began, strict=True)) < 0.2:
        pytest.skip("the machine kept rank 0 waiting for longer than rank 1 was made to")
    late = {row["rank"]: row["late_ns"] for row in job["ranks"]}
    assert late[1] > late[0]


def test_the_two_kineto_files_of_128_ranks_are_never_matched_wrongly() -> None:
    job = firelane.ranks([shared(f"kineto_128ranks_sampled_rank{rank}.json.gz") for rank in (0, 1)])
    assert job["world_size"] == 128
    assert any("2 of 128 ranks" in note for note in job["notes"])
    # Half of the events were sampled away, and what is left says neither group nor size nor number.
    assert job["matched_percent"] == 0


def test_one_rank_alone_says_what_it_cannot_tell() -> None:
    job = firelane.ranks(shared("kineto_nccl_rank0of2.json.gz"))
    assert any("with one rank" in note for note in job["notes"])
    assert job["stragglers"] == []


def test_the_published_slowdown_is_reproduced() -> None:
    pytest.importorskip("pyarrow")
    from published_whatif import make_graph, mean_step, read_rows

    published = json.loads(shared("straggler_AR_result.json").read_text())
    graph = make_graph(read_rows(shared("straggler_AR.parquet")))
    ends, _, ideal_ends = _replay(graph.kind, graph.sync, graph.communicates, graph.after, graph.durations)
    assert min(ends) >= 0, "a circle of dependencies"
    slowdown = mean_step(graph, ends) / mean_step(graph, ideal_ends)
    assert slowdown == pytest.approx(published["blocking_slowdown"], rel=0.001)
