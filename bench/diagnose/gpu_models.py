"""The building blocks of gpu_programs.py and gpu_memory.py: the machine, models, a training step, a planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from record_truth import Block, Gpt

Step = Callable[[], object]

PLAIN: dict[str, bool] = {}
SHAPES = {"shapes": True}
MEMORY = {"shapes": True, "memory": True}
STACKS = {"stacks": True}


@dataclass(frozen=True)
class Machine:
    device: str

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def size(self, on_gpu: int, on_cpu: int) -> int:
        return on_gpu if self.is_gpu else on_cpu

    def synchronize(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def empty_cache(self) -> None:
        if self.is_gpu:
            torch.cuda.empty_cache()

    @property
    def half(self) -> torch.dtype:
        """Few programs for a CPU compute in bf16, and some machines' CPUs cannot."""
        return torch.bfloat16 if self.is_gpu else torch.float32

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.is_gpu)


@dataclass(frozen=True)
class Fault:
    make: Callable[[Machine, bool], Step]
    flags: dict[str, bool] = field(default_factory=lambda: dict(SHAPES))  # what must be recorded to detect it
    finding: str = ""  # if the finding that must come first has another name than the program
    saves_time: bool = True
    alone: bool = False  # needs the device's memory to itself: never together with the fixed program


@dataclass(frozen=True)
class Program:
    """A program of the library (library.py): what a trained eye would name first, and what is true but says less."""

    make: Callable[[Machine, bool], Step]
    findings: tuple[str, ...]
    near: tuple[str, ...] = ()  # the right category, without the cause
    where: tuple[str, ...] = ()  # names of the place: a diagnosis that mentions one of them leads there
    flags: dict[str, bool] = field(default_factory=lambda: dict(MEMORY))
    saves_time: bool = True
    block: int = 1  # steps come in rounds of so many: what is timed is a multiple
    recorded: int = 4  # steps
    needs: tuple[str, ...] = ()  # modules of libraries; without one of them the program is skipped
    says: str = ""  # the verdict in words, where the rules' names alone do not tell it

    def missing(self) -> list[str]:
        return [name for name in self.needs if find_spec(name) is None]


def training(
    loss_of: Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer, *, set_to_none: bool = True
) -> Step:
    def step():
        optimizer.zero_grad(set_to_none=set_to_none)
        loss_of().backward()
        optimizer.step()

    return step


def gpt(
    on: Machine,
    *,
    layers=4,
    width=1024,
    batch=16,
    length=512,
    vocabulary=8192,
    block=Block,
    compiled=False,
    **optimizer,
) -> Step:
    """bf16 autocast, fused AdamW, tokens on the device: nothing to complain about."""
    width, batch, length, vocabulary = (
        on.size(width, 64),
        on.size(batch, 2),
        on.size(length, 16),
        on.size(vocabulary, 100),
    )
    model: Any = Gpt(layers, width, max(1, width // 64), vocabulary, block).to(on.device)
    if compiled and on.is_gpu:
        model = torch.compile(model)
    tokens = torch.randint(0, vocabulary, (batch, length + 1), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, **(optimizer or {"fused": True})))


def convolutions(
    on: Machine,
    *,
    batch=128,
    side=64,
    channels=(64, 128, 256, 512),
    bias=False,
    channels_last=True,
    compiled=False,
    images=None,
) -> Step:
    """`images` returns a batch on the device; without it the batch stays the same."""
    batch, side, before, layers = on.size(batch, 2), on.size(side, 16), 3, []
    for width in channels:
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=bias), nn.BatchNorm2d(width), nn.ReLU()]
        before = width
    layout = torch.channels_last if channels_last else torch.contiguous_format
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))
    model = model.to(on.device, memory_format=layout)
    if compiled and on.is_gpu:
        model = torch.compile(model)
    fixed = torch.randn(batch, 3, side, side, device=on.device).to(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,), device=on.device)

    def loss_of():
        x = images() if images is not None else fixed
        with on.autocast():
            return functional.cross_entropy(model(x), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01))


def captured(step: Step) -> Step:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_of=step):  # the graph alone would not keep the model alive
        graph.replay()

    return replay


class AttentionByHand(Block):
    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v


class Mlp(nn.Module):
    """`between` is applied to the hidden values: the activation, and what a fault adds."""

    def __init__(self, width: int, between: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.between = between

    def forward(self, x):
        return x + self.down(self.between(self.up(self.norm(x))))


class Mixer(nn.Module):
    """Mixes along the sequence: with transposed copies there and back (`copies`), or with a product from the left."""

    def __init__(self, length: int, copies: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, length) / length**0.5)
        self.copies = copies

    def forward(self, x):
        if self.copies:
            return functional.linear(x.transpose(1, 2).contiguous(), self.weight).transpose(1, 2).contiguous()
        return torch.bmm(self.weight.expand(len(x), -1, -1), x)


def products(on: Machine) -> Step:
    weight = torch.randn(on.size(8192, 64), on.size(8192, 64), device=on.device, dtype=torch.bfloat16) / 90

    def step():
        x = weight
        for _ in range(4):
            x = x @ weight

    return step
