"""Training and inference loops for a GPU, each with one planted fault and without it.

    machine = Machine("cuda")                            # "cpu": small sizes, to try the programs where there is no GPU
    step = FAULTS["input-bound"].make(machine, True)     # True: with the fault
    step()

Recorded by record_faults.py, scored by score.py. Sizes are for one H200, whose host launches a kernel about every 17
us in such loops: programs about kernels have long ones, programs about the host short ones. gpu_memory.py has memory
faults.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpu_models import (
    PLAIN,
    STACKS,
    AttentionByHand,
    Fault,
    Machine,
    Mixer,
    Mlp,
    Step,
    captured,
    convolutions,
    gpt,
    products,
    training,
)
from record_truth import Block, Gpt


class Tokens(Dataset):
    def __init__(self, length: int):
        self.length = length

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.001)  # stands for decoding and augmentation
        return torch.randint(0, 100, (self.length + 1,))


def slow_loader(on: Machine, fault: bool) -> Step:
    # Pinned here and not by the loader, whose thread would use the GPU while CUPTI is detached from the process.
    workers = 0 if fault else on.size(6, 1)
    more: dict[str, Any] = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
    batches = iter(DataLoader(Tokens(on.size(256, 16)), batch_size=16, num_workers=workers, **more))
    model = Gpt(2, on.size(512, 64), on.size(8, 1), on.size(8192, 100)).to(on.device)

    def loss_of():
        tokens = next(batches)
        tokens = (tokens.pin_memory() if on.is_gpu else tokens).to(on.device, non_blocking=True)
        with on.autocast():
            return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def item_after_backward(on: Machine, fault: bool) -> Step:
    """The device lags behind: meanwhile the host could launch clipping, the optimizer and the next step."""
    model = Gpt(8, on.size(768, 64), on.size(12, 1), on.size(8192, 100)).to(on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    tokens = torch.randint(0, 100, (on.size(32, 2), on.size(512, 16) + 1), device=on.device)
    total = 0.0

    def step():
        nonlocal total
        with on.autocast():
            loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        total += loss.item() if fault else loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def pageable_images(on: Machine, fault: bool) -> Step:
    side, batch = on.size(224, 16), on.size(64, 2)
    host = torch.randn(batch, 3, side, side).to(memory_format=torch.channels_last)
    if on.is_gpu and not fault:
        host = host.pin_memory()

    def images():
        return host.to(on.device, non_blocking=not fault)

    return convolutions(on, batch=64, side=224, channels=(32, 32, 64), images=images)


def optimizer_by_tensor(on: Machine, fault: bool) -> Step:
    return gpt(on, layers=6, width=512, batch=8, length=256, **({"foreach": False} if fault else {"fused": True}))


def zeros_in_gradients(on: Machine, fault: bool) -> Step:
    width = on.size(8192, 64)
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]).to(on.device)
    data = torch.randn(512, width, device=on.device)

    def loss_of():
        with on.autocast():
            return model(data).square().mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=1e-4), set_to_none=not fault)


def tiny_kernels(on: Machine, fault: bool) -> Step:
    """Fixed by a CUDA graph of the whole step."""
    model = Gpt(8, on.size(256, 64), on.size(4, 1), on.size(8192, 100)).to(on.device).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=on.is_gpu)
    tokens = torch.randint(0, 100, (2, 65), device=on.device)

    def loss_of():
        return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    step = training(loss_of, optimizer)
    return step if fault or not on.is_gpu else captured(step)


class Node:
    def __init__(self):
        self.myself = self


def garbage(on: Machine, fault: bool) -> Step:
    keep = [Node() for _ in range(60_000)] if fault else []
    train = gpt(on, layers=2, width=512, batch=8, length=256)

    def step():
        train()
        if fault:
            gc.collect()
            assert keep

    return step


def statistics_in_python(on: Machine, fault: bool) -> Step:
    train = gpt(on, layers=2, width=512, batch=8, length=256)

    def step():
        train()
        if fault:
            sum(i * i for i in range(100_000))  # stands for numbers for a plot, computed in every step

    return step


def slow_step(on: Machine, fault: bool) -> Step:
    train = gpt(on, layers=2, width=512, batch=8, length=256)
    count = 0

    def step():
        nonlocal count
        count += 1
        train()
        if fault and count % 8 == 0:
            time.sleep(0.06)  # stands for writing a checkpoint

    return step


def full_precision(on: Machine, fault: bool) -> Step:
    model = Gpt(3, on.size(1024, 64), on.size(16, 1), on.size(8192, 100)).to(on.device)
    tokens = torch.randint(0, 100, (8, on.size(512, 16) + 1), device=on.device)

    def loss_of():
        torch.set_float32_matmul_precision("highest" if fault else "high")
        return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def odd_vocabulary(on: Machine, fault: bool) -> Step:
    return gpt(on, layers=1, batch=16, vocabulary=50257 if fault else 50304)


def attention_by_hand(on: Machine, fault: bool) -> Step:
    return gpt(on, layers=2, batch=8, length=1024, block=AttentionByHand if fault else Block)


def mlps(on: Machine, between: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    """Blocks in pure bf16: no casts except those that a fault adds."""
    model = nn.Sequential(*[Mlp(on.size(1024, 64), between) for _ in range(3)]).to(on.device).bfloat16()
    data = torch.randn(on.size(16384, 32), on.size(1024, 64), device=on.device, dtype=torch.bfloat16)
    return training(lambda: model(data).square().mean(), torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def gelu_by_hand(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def gelu_by_tanh(x):
    return functional.gelu(x, approximate="tanh")


def there_and_back(x):
    return functional.gelu(x.float().bfloat16()).float().bfloat16()


def transposed_copies(on: Machine, fault: bool) -> Step:
    length, width = on.size(512, 16), on.size(1024, 64)
    model = nn.Sequential(*[Mixer(length, fault) for _ in range(6)]).to(on.device).bfloat16()
    data = torch.randn(on.size(64, 2), length, width, device=on.device, dtype=torch.bfloat16)
    return training(lambda: model(data).square().mean(), torch.optim.SGD(model.parameters(), lr=1e-4))


FAULTS = {
    "input-bound": Fault(slow_loader, PLAIN),
    "host-sync": Fault(item_after_backward, PLAIN),
    "pageable-copies": Fault(pageable_images, PLAIN),
    "single-tensor-optimizer": Fault(optimizer_by_tensor, PLAIN),
    "zero-grad-fills": Fault(zeros_in_gradients),
    "launch-overhead": Fault(tiny_kernels, PLAIN),
    "fp32-matmul": Fault(full_precision),
    "attention-unfused": Fault(attention_by_hand),
    "pointwise-unfused": Fault(lambda on, fault: mlps(on, gelu_by_hand if fault else gelu_by_tanh)),
    "tensor-cores-unused": Fault(odd_vocabulary),
    "dtype-ping-pong": Fault(lambda on, fault: mlps(on, there_and_back if fault else functional.gelu)),
    "layout-copies": Fault(transposed_copies),
    "channels-first": Fault(lambda on, fault: convolutions(on, channels_last=not fault), finding="layout-copies"),
    "conv-bias-before-batch-norm": Fault(lambda on, fault: convolutions(on, batch=256, channels=(64,) * 6, bias=fault)),
    "gc-pauses": Fault(garbage, STACKS),
    "host-code": Fault(statistics_in_python, PLAIN),
    "slow-steps": Fault(slow_step, PLAIN),
}

# Last, because compiling takes a while: the gain that the finding promises from torch.compile.
COMPILED = {
    "compiled-convolutions": Fault(lambda on, fault: convolutions(on, compiled=not fault), finding="pointwise-unfused"),
    "compiled-gpt": Fault(
        lambda on, fault: gpt(on, layers=2, width=2048, compiled=not fault), finding="pointwise-unfused"
    ),
}

HEALTHY: dict[str, Callable[[Machine], Step]] = {
    "gpt": lambda on: gpt(on, width=2048),
    "convolutions": convolutions,
    "products": products,
}
