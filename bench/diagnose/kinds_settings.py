"""Programs whose fault is a setting, or what torch.compile makes of them: for rules that read notes and counters.

    step = PROGRAMS["compiled-with-breaks"].make(Machine("cuda"), True)      # True: with the fault

Such a fault holds for the whole process, so each kind runs in one of its own (record_settings.py). For a GPU; those of
ON_CPU run without one, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training


class Layers(nn.Module):
    """Small layers; `between` runs after each."""

    def __init__(self, width: int, depth: int, between: Callable[[], None]):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.between = between

    def forward(self, x):
        for layer in self.layers:
            x = x + functional.gelu(layer(functional.layer_norm(x, x.shape[-1:])))
            self.between()
        return x


def breaks(on: Machine, fault: bool) -> Step:
    """A log line in every layer, which the compiler cannot trace."""
    log: list[int] = []

    def note():
        torch._dynamo.graph_break()
        log.append(1)
        del log[:]

    model = Layers(on.size(512, 64), on.size(16, 4), note if fault else lambda: None).to(on.device)
    compiled: Any = torch.compile(model)
    data = torch.randn(on.size(256, 16), on.size(512, 64), device=on.device)

    @torch.no_grad()
    def step():
        return compiled(data)

    return step


def lengths(on: Machine, fault: bool) -> Step:
    """Every batch has another length: compiled again for each until the limit, and then not at all."""
    torch._dynamo.config.recompile_limit = 3
    model = Layers(on.size(512, 64), on.size(8, 2), lambda: None).to(on.device)
    compiled: Any = torch.compile(model, dynamic=not fault)
    batches = [torch.randn(on.size(4096, 16) + 64 * i, on.size(512, 64), device=on.device) for i in range(6)]
    at = 0

    @torch.no_grad()
    def step():
        nonlocal at
        at += 1
        return compiled(batches[at % len(batches)])

    return step


def changed_inputs(on: Machine, fault: bool) -> Step:
    """A compiled function that changes its input in place gets no CUDA graph."""
    model = Layers(256, 24, lambda: None).to(on.device)
    state = torch.zeros(64, 256, device=on.device)

    def forward(x, state):
        y = model(x)
        if fault:
            state.mul_(0.9).add_(y)
            return y
        return y, state * 0.9 + y

    compiled: Any = torch.compile(forward, mode="reduce-overhead")
    data = torch.randn(64, 256, device=on.device)

    @torch.no_grad()
    def step():
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(data, state)

    return step


def deterministic(on: Machine, fault: bool) -> Step:
    """Messages along the edges of a graph are added up in a fixed order, which needs a sort."""
    torch.use_deterministic_algorithms(fault, warn_only=True)
    nodes, edges, width = 20_000, 200_000, 128
    sources, targets = torch.randint(0, nodes, (2, edges), device=on.device)
    features = nn.Embedding(nodes, width).to(on.device)
    layer = nn.Linear(width, width).to(on.device)

    def loss_of():
        sent = layer(features(sources))
        return torch.zeros(nodes, width, device=on.device).index_add(0, targets, sent).square().mean()

    parameters = [*features.parameters(), *layer.parameters()]
    return training(loss_of, torch.optim.SGD(parameters, lr=0.01, foreach=True))


def volumes(on: Machine, fault: bool) -> Step:
    """Convolutions of volumes, for which cuDNN's first choice is often not the fastest."""
    torch.backends.cudnn.benchmark = not fault
    model = nn.Sequential(
        nn.Conv3d(4, 24, 5, padding=2),
        nn.ReLU(),
        nn.Conv3d(24, 40, 5, padding=2, groups=4),
        nn.ReLU(),
        nn.Conv3d(40, 2, 3),
    ).to(on.device)
    data = torch.randn(4, 4, 48, 48, 48, device=on.device)
    return training(lambda: model(data).square().mean(), torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def collectives(on: Machine, fault: bool) -> Step:
    """Every gradient is averaged by a collective of its own, or all by one."""
    import torch.distributed as dist

    store = dist.FileStore(tempfile.mktemp(), 1)
    dist.init_process_group("nccl", store=store, rank=0, world_size=1, device_id=torch.device("cuda", 0))
    model = Layers(256, 96, lambda: None).to(on.device)
    data = torch.randn(512, 256, device=on.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        gradients = [each.grad for each in model.parameters()]
        if fault:
            for each in gradients:
                dist.all_reduce(each, dist.ReduceOp.AVG)
        else:
            flat = torch.cat([each.flatten() for each in gradients])
            dist.all_reduce(flat, dist.ReduceOp.AVG)
            parts = flat.split([each.numel() for each in gradients])
            torch._foreach_copy_(gradients, [part.view_as(each) for part, each in zip(parts, gradients, strict=True)])
        optimizer.step()

    return step


def registered(on: Machine, fault: bool) -> Step:
    """A buffer on the host is pinned again for every batch that it holds."""
    runtime: Any = torch.cuda.cudart()
    buffer = torch.randn(4096, 2048)
    held = torch.empty_like(buffer, device=on.device)
    weight = torch.randn(2048, 2048, device=on.device)
    size = buffer.numel() * buffer.element_size()
    if not fault:
        runtime.cudaHostRegister(buffer.data_ptr(), size, 0)

    def step():
        if fault:
            runtime.cudaHostRegister(buffer.data_ptr(), size, 0)
        held.copy_(buffer, non_blocking=True)
        result = held @ weight
        if fault:
            torch.cuda.current_stream().synchronize()
            runtime.cudaHostUnregister(buffer.data_ptr())
        return result

    return step


def products(on: Machine) -> Step:
    weight = torch.randn(on.size(4096, 256), on.size(4096, 256), device=on.device) / 64

    def step():
        x = weight
        for _ in range(6):
            x = x @ weight
        return x

    return step


def throttled(on: Machine, fault: bool) -> Step:
    """From the fifteenth step on the device's clock is held down."""
    step, calls = products(on), 0
    clocks = ["nvidia-smi", "--lock-gpu-clocks=600,600"] if fault else ["nvidia-smi", "--reset-gpu-clocks"]

    def counted():
        nonlocal calls
        calls += 1
        if calls == 15:
            subprocess.run(clocks, check=False, stdout=sys.stderr)
        return step()

    return counted


def crowded(on: Machine, fault: bool) -> Step:
    """Other programs keep every core busy."""
    if fault:
        for _ in range(2 * len(os.sched_getaffinity(0))):
            waster = "import os, time\nwhile os.getppid() > 1 and time.monotonic() < %f: pass"
            import time

            subprocess.Popen([sys.executable, "-c", waster % (time.monotonic() + 20)], start_new_session=True)
    model = Layers(on.size(256, 64), 24, lambda: None).to(on.device)
    data = torch.randn(64, on.size(256, 64), device=on.device)
    return training(lambda: model(data).square().mean(), torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def history(on: Machine, fault: bool) -> Step:
    """A running average over all losses so far, which are kept."""
    model = Layers(on.size(256, 64), 4, lambda: None).to(on.device)
    data = torch.randn(64, on.size(256, 64), device=on.device)
    losses: list[torch.Tensor] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        losses.extend([loss.detach()] * 40)
        if not fault:
            del losses[:-40]
        return torch.stack(losses).mean()

    return step


PROGRAMS = {
    "compiled-with-breaks": Program(breaks, ("graph-breaks",)),
    "compiled-for-every-length": Program(lengths, ("recompilations",)),
    "compiled-without-graphs": Program(changed_inputs, ("cuda-graphs-skipped",)),
    "graph-in-a-fixed-order": Program(deterministic, ("deterministic-algorithms",)),
    "volumes-by-the-first-choice": Program(volumes, ("cudnn-benchmark",)),
    "gradient-by-gradient": Program(collectives, ("small-collectives",)),
    "pinned-for-every-batch": Program(registered, ("pinned-allocation",)),
    "products-on-a-slow-clock": Program(throttled, ("clocks-throttled",)),
    "crowded-host": Program(crowded, ("busy-machine",)),
    "average-over-all-losses": Program(history, ("growing-steps",)),
}
ON_CPU = {"compiled-with-breaks", "compiled-for-every-length", "crowded-host", "average-over-all-losses"}
