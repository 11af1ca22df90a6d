"""Loops of the sealed test (library.py, SEALED), around other models, each with one planted fault and mended."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpu_models import Machine, Program, Step, training
from kinds_next import perceptron
from kinds_sealed_models import convolved, photos


def runge_kutta_as_written(field, y, h: float):
    """Each stage is a function of the one before, as in a book: ten times the field instead of four."""

    def first():
        return field(y)

    def second():
        return field(y + h / 2 * first())

    def third():
        return field(y + h / 2 * second())

    def fourth():
        return field(y + h * third())

    return y + h / 6 * (first() + 2 * second() + 2 * third() + fourth())


def runge_kutta(field, y, h: float):
    first = field(y)
    second = field(y + h / 2 * first)
    third = field(y + h / 2 * second)
    return y + h / 6 * (first + 2 * second + 2 * third + field(y + h * third))


def trajectories(on: Machine, fault: bool) -> Step:
    """A neural differential equation, whose solver computes its stages again for every later one; or keeps them."""
    width = on.size(1024, 48)
    field = perceptron(on, width, width, width, width)
    begin = torch.randn(on.size(4096, 64), width, device=on.device)
    wanted = torch.randn_like(begin)
    advance = runge_kutta_as_written if fault else runge_kutta

    def loss_of():
        y = begin
        with on.autocast():
            for _ in range(4):
                y = advance(field, y, 0.25)
        return functional.mse_loss(y.float(), wanted)

    return training(loss_of, torch.optim.AdamW(field.parameters(), lr=1e-4, fused=True))


class Policy(nn.Module):
    def __init__(self, sees: int, width: int, does: int):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sees, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean, self.value, self.spread = (
            nn.Linear(width, does),
            nn.Linear(width, 1),
            nn.Parameter(torch.zeros(does)),
        )

    def forward(self, seen, done):
        x = self.body(seen)
        off = (done - self.mean(x)) * (-self.spread).exp()
        return (-0.5 * off.square() - self.spread - 0.5 * math.log(2 * math.pi)).sum(-1), self.value(x)[:, 0]


def shuffled_lists(count: int, size: int, _device: str) -> list[list[int]]:
    order = list(range(count))
    random.shuffle(order)
    return [order[i : i + size] for i in range(0, count, size)]


def shuffled_tensors(count: int, size: int, device: str):
    return torch.randperm(count, device=device).split(size)


def proximal(on: Machine, fault: bool) -> Step:
    """Parts of a rollout are drawn as lists of Python numbers, which index five tensors each; or as tensors."""
    sees, does, count, size = on.size(64, 8), on.size(8, 2), on.size(16384, 4096), on.size(4096, 1024)
    model = Policy(sees, on.size(512, 8), does).to(on.device)
    seen, done = torch.randn(count, sees, device=on.device), torch.randn(count, does, device=on.device)
    before = torch.randn(count, device=on.device) - 12
    gain, back = torch.randn(2, count, device=on.device).unbind()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, fused=True)
    shuffled: Any = shuffled_lists if fault else shuffled_tensors

    def step():
        for part in shuffled(count, size, on.device):
            now, value = model(seen[part], done[part])
            ratio, better = (now - before[part]).clamp(-4, 4).exp(), gain[part]
            clipped = torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better)
            loss = 0.5 * functional.mse_loss(value, back[part]) - clipped.mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()

    return step


class Trainer:
    """The loop of a small framework: forward and backward are in a closure that the optimizer calls."""

    def __init__(self, on: Machine, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], logs_again: bool):
        self.on, self.model, self.batch, self.logs_again = on, model, batch, logs_again
        self.optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
        self.running = torch.zeros((), device=on.device)

    def closure(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        images, labels = self.batch
        with self.on.autocast():
            loss = functional.cross_entropy(self.model(images), labels)
        loss.backward()
        return loss

    def step(self) -> None:
        loss = self.optimizer.step(self.closure)
        if self.logs_again:
            loss = self.closure()
        self.running.lerp_(loss.detach(), 0.1)


def logged(on: Machine, fault: bool) -> Step:
    """The loss in the log is computed by a second call of the closure, gradients and all; or is the first's."""
    width = on.size(128, 16)
    layers = convolved(3, width, 2)
    for _ in range(4):
        layers += convolved(width, width)
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
    model = model.to(on.device, memory_format=torch.channels_last)
    count = on.size(128, 8)
    labels = torch.randint(0, 100, (count,), device=on.device)
    return Trainer(on, model, (photos(on, count, on.size(128, 24)), labels), fault).step


def clicks(on: Machine, fault: bool) -> Step:
    """A large table of which a batch reads little has a gradient of its own size; or one of the rows that were read."""
    rows, width, count = on.size(8_000_000, 60_000), on.size(128, 32), on.size(4096, 64)
    table = nn.EmbeddingBag(rows, width, mode="sum", sparse=not fault, device=on.device)
    top = perceptron(on, width, 8 * width, 4 * width, 1)
    items = torch.randint(0, rows, (count, 20), device=on.device)
    clicked = torch.randint(0, 2, (count, 1), device=on.device).float()
    moves_table = torch.optim.SGD(table.parameters(), lr=0.1)
    moves_top = torch.optim.AdamW(top.parameters(), lr=1e-4, fused=True)

    def step():
        moves_table.zero_grad(set_to_none=True)
        moves_top.zero_grad(set_to_none=True)
        seen = table(items)
        with on.autocast():
            scores = top(seen)
        functional.binary_cross_entropy_with_logits(scores.float(), clicked).backward()
        moves_table.step()
        moves_top.step()

    return step


def guarded(on: Machine, fault: bool) -> Step:
    """What to go back to if the loss explodes: a deep copy of all weights and moments after each step; or one kept
    that is written over."""
    width = on.size(512, 32)
    model = perceptron(on, *[width] * on.size(41, 25))
    data = torch.randn(on.size(1024, 64), width, device=on.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    kept: dict[str, Any] = {}

    def live() -> list[torch.Tensor]:
        moments = [state[key] for state in optimizer.state.values() for key in ("exp_avg", "exp_avg_sq", "step")]
        return [each.detach() for each in model.parameters()] + moments

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        if fault:
            kept["model"] = copy.deepcopy(model.state_dict())
            kept["optimizer"] = copy.deepcopy(optimizer.state_dict())
        elif not kept:
            kept["tensors"] = [each.clone() for each in live()]
        else:
            torch._foreach_copy_(kept["tensors"], live())

    return step


class Recordings(Dataset):
    """So few that an epoch is eight batches."""

    def __init__(self, count: int, length: int):
        self.sounds = torch.randn(count, length)

    def __len__(self) -> int:
        return len(self.sounds)

    def __getitem__(self, which: int):
        return self.sounds[which], which % 10


def epochs(on: Machine, fault: bool) -> Step:
    """Epochs of eight steps: the loader starts its workers for each epoch anew; or keeps them."""
    size, length, width = on.size(64, 16), on.size(8000, 1000), on.size(256, 16)
    loader = DataLoader(Recordings(8 * size, length), size, shuffle=True, num_workers=2, persistent_workers=not fault)
    model = nn.Sequential(
        nn.Conv1d(1, width, 16, 4),
        nn.ReLU(),
        nn.Conv1d(width, width, 8, 4),
        nn.ReLU(),
        nn.Conv1d(width, width, 4, 2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    ).to(on.device)
    batches: Any = iter(())

    def loss_of():
        nonlocal batches
        found = next(batches, None)
        if found is None:
            batches = iter(loader)
            found = next(batches)
        # Pinned here and not by the loader, as in kinds_unseen.py.
        sounds, labels = (each.pin_memory() if on.is_gpu else each for each in found)
        sounds, labels = sounds.to(on.device, non_blocking=True), labels.to(on.device, non_blocking=True)
        with on.autocast():
            return functional.cross_entropy(model(sounds[:, None]), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Flow(nn.Module):
    """A normalizing flow: half of the numbers says how to scale and move the other half, in turns."""

    def __init__(self, on: Machine, width: int, depth: int):
        super().__init__()
        self.nets = nn.ModuleList(perceptron(on, width // 2, 2 * width, width) for _ in range(depth))

    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        volume = torch.zeros(len(x), device=x.device)
        for net in self.nets:
            scale, move = net(left).float().chunk(2, dim=1)
            scale = torch.tanh(scale)
            left, right = right * scale.exp() + move, left
            volume = volume + scale.sum(1)
        return (0.5 * (left.square() + right.square()).sum(1) - volume).mean()


def flow(on: Machine, fault: bool) -> Step:
    """The search for the operator that makes a NaN was never switched off."""
    width = on.size(256, 64)
    model = Flow(on, width, on.size(16, 8))
    data = torch.randn(on.size(8192, 64), width, device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step():
        with torch.autograd.set_detect_anomaly(fault):
            optimizer.zero_grad(set_to_none=True)
            with on.autocast():
                loss = model(data)
            loss.backward()
            optimizer.step()

    return step


PROGRAMS = {
    "ode-stages-computed-again": Program(
        trajectories,
        ("repeated-inputs", "constant-work", "repeated-operators"),
        near=("launch-overhead", "dominant-operator", "recomputed-prefix"),
        says="each stage of the solver computes all stages before it again: ten calls of the network instead of four",
    ),
    "ppo-minibatches-as-lists": Program(
        proximal,
        ("host-code", "host-sync", "pageable-copies"),
        near=("launch-overhead", "exposed-copies", "host-compute"),
        says="indices are shuffled and kept as Python lists, each made a tensor five times; randperm on the device",
    ),
    "loss-computed-again-for-the-log": Program(
        logged,
        ("repeated-backward", "unused-gradients", "repeated-operators"),
        near=("dominant-operator",),
        says="forward and backward run a second time after the update to log the loss; its gradients are dropped",
    ),
    "table-with-dense-gradients": Program(
        clicks,
        ("dense-gradients", "dominant-operator", "zero-grad-fills"),
        near=("pointwise-unfused", "unused-gradients"),
        says="the gradient of a large table is dense: zeros are written and added for rows that nobody read; "
        "sparse=True (no id names that: the nearest are those of the fills and the update)",
    ),
    "weights-deepcopied-in-every-step": Program(
        guarded,
        ("copied-modules", "whole-copies", "repeated-operators", "host-code"),
        near=("launch-overhead", "allocator-thrash"),
        says="deepcopy of weights and moments, tensor by tensor in Python; _foreach_copy_ into tensors that are kept",
    ),
    "loader-starts-workers-anew": Program(
        epochs,
        ("input-bound", "slow-steps"),
        near=("host-code",),
        block=8,
        recorded=8,
        says="workers are started for every epoch, and the first step of it waits for them; persistent_workers=True",
    ),
    "anomaly-detection-left-on": Program(
        flow,
        (
            "anomaly-detection",
            "host-sync",
            "repeated-operators",
        ),  # the first is a rule that was written after the score
        near=("launch-overhead", "host-code"),
        says="detect_anomaly looks for NaN in every gradient, waits for each answer, and keeps stacks of all operators",
    ),
}
