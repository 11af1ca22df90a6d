"""Records the GPU fixtures in this folder with torch.profiler, on a machine with an NVIDIA GPU.

Usage:
    python tests/data/make_gpu_traces.py OUTPUT_FOLDER
"""

import os
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

DEVICE = "cuda"


def record(path, work, *, steps=3, sync_events=True, **options):
    """Runs `work` once per step: one warm-up step, then `steps` recorded ones."""
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=sync_events)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=1, active=steps),
        experimental_config=config,
        on_trace_ready=lambda p: p.export_chrome_trace(path),
        **options,
    ) as prof:
        for _ in range(steps + 1):
            work()
            prof.step()
    print(path, Path(path).stat().st_size, "bytes")


def small_model():
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).to(DEVICE)


def cuda_graph(folder):
    """A CUDA graph of a small network, replayed: many kernels share one launch."""
    model = small_model()
    x = torch.randn(64, 256, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        model(x)

    def work():
        for _ in range(4):
            graph.replay()
        torch.cuda.synchronize()

    record(f"{folder}/cuda_graph.json.gz", work, record_shapes=True)


def two_streams(folder):
    """Two streams with events between them, pinned and pageable copies, .item(), an annotation."""
    a = torch.randn(1024, 1024, device=DEVICE)
    pinned = torch.randn(1024, 1024).pin_memory()
    pageable = torch.randn(1024, 1024)
    other = torch.cuda.Stream()
    event = torch.cuda.Event()

    def work():
        with record_function("compute"):
            b = a @ a
            event.record()
        with torch.cuda.stream(other):
            other.wait_event(event)
            c = b + 1
            c.record_stream(other)
        torch.cuda.current_stream().wait_stream(other)
        a.copy_(pinned, non_blocking=True)
        a.copy_(pageable)
        (c.sum() > 0).item()

    record(f"{folder}/two_streams.json.gz", work, record_shapes=True, profile_memory=True, with_flops=True)


def compiled(folder):
    """torch.compile: Triton kernels, launched by the driver API."""
    model = torch.compile(small_model())
    x = torch.randn(64, 256, device=DEVICE)

    def work():
        model(x).sum().backward()

    for _ in range(3):
        work()
    record(f"{folder}/compiled.json.gz", work, record_shapes=True, with_stack=False)


def one_rank(folder):
    """A process group of one rank: distributedInfo and the metadata of collectives."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl")
    x = torch.randn(1 << 20, device=DEVICE)

    def work():
        torch.distributed.all_reduce(x)
        torch.cuda.synchronize()

    work()
    record(f"{folder}/one_rank.json.gz", work, record_shapes=True)
    torch.distributed.destroy_process_group()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (cuda_graph, two_streams, compiled, one_rank):
        try:
            make(folder)
        except Exception as error:  # one failing program must not lose the others
            print(f"{make.__name__}: {error}", file=sys.stderr)


main()
