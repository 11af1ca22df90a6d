"""Loops for a GPU, each with and without one planted memory fault: gpu_programs.py has those that cost time.

Each has the device to itself and computes large products in bf16, with nothing else to complain about.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import MEMORY, Fault, Machine, Step, gpt

GIB = 1 << 30


def linears(on: Machine) -> nn.Module:
    width = on.size(8192, 64)
    model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(3)])
    return model.to(on.device).bfloat16().requires_grad_(False)


def rows(on: Machine, count: int = 8192) -> torch.Tensor:
    return torch.randn(on.size(count, 32), on.size(8192, 64), device=on.device, dtype=torch.bfloat16)


def large_cache(on: Machine, fault: bool) -> Step:
    """A key-value cache for all requests, allocated at the start: nearly all of the memory."""
    model, data = linears(on), rows(on)
    capacity = torch.cuda.mem_get_info()[1] if on.is_gpu else 1 << 20
    cache = torch.empty(int(capacity * (0.92 if fault else 0.5)), dtype=torch.uint8, device=on.device)

    def step():
        out = model(data)
        cache[: out.numel() * 2].view(torch.bfloat16).copy_(out.flatten())

    return step


def loss_at_once(on: Machine, fault: bool) -> Step:
    """The logits of every word for every token, and their logarithms as well; fixed by computing them in pieces."""
    model, data, words = linears(on), rows(on, 16384), on.size(50304, 100)
    head = nn.Linear(data.shape[1], words, bias=False).to(on.device).bfloat16().requires_grad_(False)
    labels = torch.randint(0, words, (len(data),), device=on.device)

    def step():
        scores = head(model(data))
        parts = 1 if fault else 16
        pairs = zip(scores.chunk(parts), labels.chunk(parts), strict=True)
        return sum(functional.cross_entropy(part, wanted, reduction="sum") for part, wanted in pairs)

    return step


def kept_outputs(on: Machine, fault: bool) -> Step:
    model, data = linears(on), rows(on)
    outputs = []

    def step():
        output = model(data)
        if fault:
            outputs.append(output)

    return step


def growing_cache(on: Machine, fault: bool) -> Step:
    """A cache that grows with torch.cat needs a new, larger block each time; fixed by one block of the final size."""
    unit = on.size(2 * GIB, 1 << 12)
    fresh = torch.ones(unit, dtype=torch.uint8, device=on.device)
    cache = torch.empty(0 if fault else 10 * unit, dtype=torch.uint8, device=on.device)
    count = 0

    def step():
        nonlocal cache, count
        at = 4 + count % 6
        count += 1
        if not fault:
            cache[at * unit : (at + 1) * unit].copy_(fresh)
            return
        if at == 4:
            cache = torch.empty(0, dtype=torch.uint8, device=on.device)
            cache = torch.ones(4 * unit, dtype=torch.uint8, device=on.device)
        cache = torch.cat((cache, fresh))

    return step


def emptied_cache(on: Machine, fault: bool) -> Step:
    train = gpt(on, layers=2)

    def step():
        train()
        if fault:
            on.empty_cache()

    return step


FAULTS = {
    "allocator-thrash": Fault(emptied_cache, MEMORY, alone=True),
    "memory-spike": Fault(loss_at_once, MEMORY, saves_time=False, alone=True),
    "memory-leak": Fault(kept_outputs, MEMORY, saves_time=False, alone=True),
    "memory-near-limit": Fault(large_cache, MEMORY, saves_time=False, alone=True),
    "memory-fragmentation": Fault(growing_cache, MEMORY, saves_time=False, alone=True),
}
