"""Collectives of two processes under torch.profiler and firelane.profiler, with gloo.

gloo's process group only reports its ops and ranges to profilers: `record_param_comms`, with which NCCL's reports the
details of a collective, is tested in src/record/torch/recording_test.cc.
"""

import collections
import json

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import firelane.profiler

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="torch without gloo")


def collectives(rank):
    x = torch.ones(8)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather([torch.empty(8), torch.empty(8)], x)
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    dist.barrier()


def run_rank(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    collectives(rank)
    for module in (torch.profiler, firelane.profiler):
        with module.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
            collectives(rank)
        prof.export_chrome_trace(f"{folder}/{module.__name__}.{rank}.json")
    dist.destroy_process_group()


def described(trace):
    return collections.Counter(
        (event["cat"], event["name"], json.dumps(event["args"].get("Input Dims")))
        for event in trace["traceEvents"]
        if event.get("cat") in ("cpu_op", "user_annotation") and event["name"].startswith(("c10d::", "gloo:"))
    )


def test_two_ranks_over_gloo_look_the_same(tmp_path):
    mp.start_processes(run_rank, args=(str(tmp_path),), nprocs=2, start_method="fork")
    for rank in (0, 1):
        theirs, ours = (
            json.loads((tmp_path / f"{module.__name__}.{rank}.json").read_text())
            for module in (torch.profiler, firelane.profiler)
        )
        assert ours["distributedInfo"] == theirs["distributedInfo"] and ours["distributedInfo"]["rank"] == rank
        ops = {key: n for key, n in described(theirs).items() if key[0] == "cpu_op"}
        assert ops and {key: n for key, n in described(ours).items() if key[0] == "cpu_op"} == ops
        assert described(theirs) - described(ours) == collections.Counter()
