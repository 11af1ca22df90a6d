"""Small training loops for the CPU, each with one planted fault and without it.

    step = FAULTS["input-bound"].make(True)      # True: with the fault
    step()

Used by the live scoreboard (bench/diagnose/cpu.py) and recorded for the tests (tests/data/make_cpu_faults.py). A step
takes a few milliseconds.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

Step = Callable[[], object]


def seeded(make):
    def made(*args, **kwargs):
        torch.manual_seed(0)
        return make(*args, **kwargs)

    return made


def mlp(width: int, layers: int) -> nn.Sequential:
    return nn.Sequential(*[layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU())])


def training(model: nn.Module, batch, *, optimizer=None, set_to_none=True) -> Step:
    """The usual training step; `batch` is a tensor or a function that returns one."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        data = batch() if callable(batch) else batch
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)

    return step


class Items(Dataset):
    def __init__(self, width: int, seconds: float):
        self.width, self.seconds = width, seconds

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.seconds:
            time.sleep(self.seconds)  # stands for decoding and augmentation
        return torch.full((self.width,), float(index % 7))


@seeded
def slow_loader(fault: bool) -> Step:
    batches = iter(DataLoader(Items(256, 0.001 if fault else 0), batch_size=8, num_workers=0))
    return training(mlp(256, 4), lambda: next(batches).repeat(64, 1))


@seeded
def single_tensor_optimizer(fault: bool) -> Step:
    model = mlp(48, 40)
    how: dict[str, Any] = {"foreach": False} if fault else {"fused": True}
    return training(model, torch.randn(64, 48), optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4, **how))


@seeded
def zeros_in_gradients(fault: bool) -> Step:
    model = mlp(16, 60)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    return training(model, torch.randn(4, 16), optimizer=optimizer, set_to_none=not fault)


class Hardswish(nn.Module):
    def __init__(self, by_hand: bool):
        super().__init__()
        self.by_hand = by_hand

    def forward(self, x):
        return x * (x + 3).clamp(0, 6) / 6 if self.by_hand else functional.hardswish(x)


@seeded
def pointwise_chain(fault: bool) -> Step:
    # Small enough for malloc to keep the memory: new pages would cost more than the arithmetic.
    model = nn.Sequential(*[Hardswish(fault) for _ in range(20)])
    data = torch.randn(128, 200)

    def step():
        with torch.no_grad():
            return model(data)

    return step


def products(rows: int, width: int, after_each: Callable[[torch.Tensor], torch.Tensor] | None) -> Step:
    """A chain of matrix products; `after_each` is what the fault does to each result."""
    weight = torch.randn(width, width) / width**0.5
    data = torch.randn(rows, width)

    def step():
        x = data
        for _ in range(20):
            x = (x @ weight).relu_()
            if after_each is not None:
                x = after_each(x)
        return x

    return step


@seeded
def layout_copies(fault: bool) -> Step:
    return products(160, 160, (lambda x: x.t().contiguous().t().contiguous()) if fault else None)


@seeded
def type_ping_pong(fault: bool) -> Step:
    return products(256, 64, (lambda x: x.double().float()) if fault else None)


class Node:
    """Garbage that only the collector can free."""

    def __init__(self):
        self.myself = self


@seeded
def garbage(fault: bool) -> Step:
    keep = [Node() for _ in range(10_000)] if fault else []
    train = training(mlp(256, 4), torch.randn(256, 256))

    def step():
        train()
        if fault:
            for _ in range(50):
                Node()
            gc.collect()
            assert keep

    return step


@seeded
def leak(fault: bool) -> Step:
    kept = []
    model = mlp(256, 4)
    data = torch.randn(1024, 256)

    def step():
        output = model(data)
        output.sum().backward()
        model.zero_grad()
        if fault:
            kept.append(output)  # 1 MiB, and more with its graph

    return step


@seeded
def memory_spike(fault: bool) -> Step:
    scores = torch.randn(256, 40_000)
    labels = torch.randint(0, 40_000, (256,))

    def loss(part, wanted):
        return functional.cross_entropy(part, wanted, reduction="sum")  # allocates a tensor as large as its input

    def step():
        with torch.no_grad():
            if fault:
                return loss(scores, labels)
            return sum(loss(part, wanted) for part, wanted in zip(scores.chunk(16), labels.chunk(16), strict=True))

    return step


@seeded
def slow_step(fault: bool) -> Step:
    train = training(mlp(256, 4), torch.randn(256, 256))
    count = 0

    def step():
        nonlocal count
        count += 1
        train()
        if fault and count % 8 == 0:
            time.sleep(0.05)  # stands for writing a checkpoint

    return step


class Attention(nn.Module):
    def __init__(self, by_hand: bool):
        super().__init__()
        self.by_hand = by_hand
        self.qkv = nn.Linear(64, 192)

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], x.shape[1], 3, 4, 16).permute(2, 0, 3, 1, 4)
        if not self.by_hand:
            return functional.scaled_dot_product_attention(q, k, v)
        scores = q @ k.transpose(-2, -1) / 4.0
        return torch.softmax(scores, dim=-1) @ v


@seeded
def attention(fault: bool) -> Step:
    model = Attention(fault)
    data = torch.randn(4, 512, 64)

    def step():
        with torch.no_grad():
            return model(data)

    return step


@seeded
def tiny_operators(fault: bool) -> Step:
    if fault:
        rows = list(torch.randn(400, 16))

        def step():
            return [row.mul(2.0) + 1.0 for row in rows]
    else:
        table = torch.randn(400, 2_000)

        def step():
            return table.mul(2.0) + 1.0

    return step


@dataclass(frozen=True)
class Fault:
    make: Callable[[bool], Step]
    flags: dict[str, Any] = field(default_factory=dict)  # what must be recorded to detect it
    saves_time: bool = True


SHAPES: dict[str, Any] = {"record_shapes": True}
MEMORY: dict[str, Any] = {"record_shapes": True, "profile_memory": True}
STACKS: dict[str, Any] = {"with_stack": True}

# Keyed by the finding that must come first.
FAULTS = {
    "input-bound": Fault(slow_loader),
    "single-tensor-optimizer": Fault(single_tensor_optimizer),
    "zero-grad-fills": Fault(zeros_in_gradients),
    "pointwise-unfused": Fault(pointwise_chain, SHAPES),
    "layout-copies": Fault(layout_copies, SHAPES),
    "dtype-ping-pong": Fault(type_ping_pong, SHAPES),
    "gc-pauses": Fault(garbage, STACKS),
    "memory-leak": Fault(leak, MEMORY, saves_time=False),
    "memory-spike": Fault(memory_spike, MEMORY, saves_time=False),
    "slow-steps": Fault(slow_step),
    "attention-unfused": Fault(attention, SHAPES),
    "launch-overhead": Fault(tiny_operators),
}


@seeded
def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, activation="gelu")
    return training(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(8, 128, 128))


@seeded
def convolutions() -> Step:
    # The bias before batch norm is not a fault here: on a CPU the convolution adds it for free.
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.Conv2d(32, 32, 3, padding=1)]
    return training(
        nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), torch.randn(16, 3, 48, 48)
    )


@seeded
def large_gradients() -> Step:
    # Filling gradients with zeros is not a fault here: on a CPU new memory for large gradients costs more.
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    return training(model, torch.randn(64, 512), optimizer=optimizer, set_to_none=False)


HEALTHY = {
    "large-mlp": seeded(lambda: training(mlp(384, 4), torch.randn(512, 384))),
    "transformer": transformer,
    "convolutions": convolutions,
    "large-gradients": large_gradients,
}
