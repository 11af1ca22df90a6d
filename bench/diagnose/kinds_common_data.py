"""Common trouble with data and where it lives (library.py, COMMON), each with one planted fault and mended.

Each kind has two programs: one to write and tune rules with, and one in KEPT, which is scored and never tuned with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer, stack, to_device
from kinds_next import perceptron


class Again:
    """The batches of a loader, epoch after epoch."""

    def __init__(self, loader):
        self.loader, self.batches = loader, iter(())

    def __call__(self):
        found = next(self.batches, None)
        if found is None:
            self.batches = iter(self.loader)
            found = next(self.batches)
        return found


# ---- The GPU is there, and the program computes on the CPU ----


def classifier_left_behind(on: Machine, fault: bool) -> Step:
    """A small classifier of images is trained; the line that moves it to the GPU is missing."""
    where = Machine("cpu") if fault else on
    model: Any = nn.Sequential(*stack(3, 16, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    model = model.to(where.device)
    images = torch.randn(32, 3, 32, 32, device=where.device)
    labels = torch.randint(0, 10, (32,), device=where.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(lambda: functional.cross_entropy(model(images), labels), optimizer)


def encoder_left_behind(on: Machine, fault: bool) -> Step:
    """Sentences are encoded for a search: the encoder was loaded and never moved."""
    where = Machine("cpu") if fault else on
    encoder = Transformer(256, 4, 3).to(where.device).eval()
    sentences = torch.randn(16, 32, 256, device=where.device)

    @torch.inference_mode()
    def step():
        return functional.normalize(encoder(sentences).mean(1), dim=-1)

    return step


# ---- Rows that are fetched one by one from tensors ----


def churn(on: Machine, fault: bool) -> Step:
    """A table that fits into memory many times, in a DataLoader that fetches row by row, or shuffled and sliced."""
    rows, columns, size = 20_000, on.size(64, 24), on.size(2048, 1024)
    table, labels = torch.randn(rows, columns), torch.randint(0, 2, (rows,))
    model = perceptron(on, columns, on.size(512, 32), on.size(512, 32), 2)
    fetch = Again(DataLoader(TensorDataset(table, labels), size, shuffle=True, drop_last=True))
    table, labels = table.to(on.device), labels.to(on.device)

    def batch():
        if fault:
            x, y = fetch()
            return x.to(on.device), y.to(on.device)
        chosen = torch.randint(0, rows, (size,), device=on.device)
        return table[chosen], labels[chosen]

    def loss_of():
        x, y = batch()
        return functional.cross_entropy(model(x), y)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


class Windows(Dataset):
    """Windows of one long series that lives where the model does."""

    def __init__(self, series: torch.Tensor, length: int):
        self.series, self.length = series, length

    def __len__(self) -> int:
        return len(self.series) - self.length

    def __getitem__(self, first: int):
        window = self.series[first : first + self.length]
        return (window - window.mean()) / (window.std() + 1e-6), self.series[first + self.length]


def series(on: Machine, fault: bool) -> Step:
    """The next value of a series: each window is cut and scaled by itself, or all of a batch together."""
    length, size, width = on.size(128, 48), on.size(256, 48), on.size(512, 48)
    data = Windows(torch.randn(50_000, device=on.device).cumsum(0), length)
    model = perceptron(on, length, width, width, 1)
    fetch = Again(DataLoader(data, size, shuffle=True, drop_last=True))
    steps = torch.arange(length, device=on.device)

    def batch():
        if fault:
            return fetch()
        first = torch.randint(0, len(data), (size,), device=on.device)
        windows = data.series[first[:, None] + steps]
        scaled = (windows - windows.mean(1, keepdim=True)) / (windows.std(1, keepdim=True) + 1e-6)
        return scaled, data.series[first + length]

    def loss_of():
        x, y = batch()
        return functional.mse_loss(model(x)[:, 0], y)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


# ---- Many small tensors that are sent to the device one by one ----


def detected(on: Machine, fault: bool) -> Step:
    """Targets of a detector: each image has a dictionary of tensors, sent tensor by tensor, or packed before."""
    count, width = 64, on.size(128, 16)
    model: Any = to_device(nn.Sequential(*stack(3, width, width), nn.AdaptiveAvgPool2d(1), nn.Flatten()), on)
    head = nn.Linear(width, 4).to(on.device)
    images = torch.randn(count, 3, 64, 64, device=on.device).to(memory_format=torch.channels_last)
    targets = [
        {"boxes": torch.rand(5, 4), "labels": torch.ones(5, 1), "area": torch.rand(5, 1), "crowd": torch.zeros(5, 1)}
        for _ in range(count)
    ]
    packed = torch.stack([torch.cat(list(each.values()), dim=1) for each in targets])

    def boxes():
        if fault:
            sent = [{key: value.to(on.device) for key, value in each.items()} for each in targets]
            return torch.stack([each["boxes"] for each in sent])
        return packed.to(on.device)[..., :4]

    def loss_of():
        with on.autocast():
            found = head(model(images))
        return functional.l1_loss(found.float()[:, None].expand(-1, 5, -1), boxes())

    parameters = [*model.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def molecules(on: Machine, fault: bool) -> Step:
    """A batch of molecules: the atoms of each are sent by themselves and joined there, or joined first."""
    width = on.size(1024, 32)
    embed, model = nn.Embedding(100, width).to(on.device), perceptron(on, width, width, width, 1)
    atoms = [torch.randint(0, 100, (20 + i % 9,)) for i in range(256)]
    weights = [torch.rand(len(each)) for each in atoms]
    owner = torch.repeat_interleave(torch.arange(len(atoms)), torch.tensor([len(each) for each in atoms]))
    owner = owner.to(on.device)

    def batch():
        if fault:
            return torch.cat([each.to(on.device) for each in atoms]), torch.cat([w.to(on.device) for w in weights])
        return torch.cat(atoms).to(on.device), torch.cat(weights).to(on.device)

    def loss_of():
        kinds, weight = batch()
        x = embed(kinds) * weight[:, None]
        return model(torch.zeros(len(atoms), width, device=on.device).index_add_(0, owner, x)).square().mean()

    return training(loss_of, torch.optim.AdamW([*embed.parameters(), *model.parameters()], lr=1e-4, fused=True))


# ---- Wider than needed when it is sent ----


def photos(on: Machine, fault: bool) -> Step:
    """Images come as bytes: they become floats on the host and are sent like that, or are sent as they come."""
    count, side, width = 64, 224, 48
    model: Any = nn.Sequential(
        nn.Conv2d(3, width, 7, 4, 3), nn.ReLU(), *stack(width, width, 2 * width), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    model = to_device(model, on)
    stored = [torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8).pin_memory() for _ in range(2)]
    floats = [torch.empty(count, 3, side, side).pin_memory() for _ in stored]
    turn = 0

    def images():
        nonlocal turn
        turn = 1 - turn
        if fault:
            return floats[turn].copy_(stored[turn]).to(on.device, non_blocking=True).div_(255)
        return stored[turn].to(on.device, non_blocking=True).float().div_(255)

    def loss_of():
        x = images().to(memory_format=torch.channels_last)
        with on.autocast():
            return model(x).float().square().mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def readings(on: Machine, fault: bool) -> Step:
    """Readings of sensors come from NumPy as doubles: sent so and cut to float there, or float before."""
    rows, columns = 65_536, 256
    model = perceptron(on, columns, 512, 512, 1)
    wide = [np.random.default_rng(seed).standard_normal((rows, columns)) for seed in range(2)]
    narrow = [torch.from_numpy(each.astype(np.float32)).pin_memory() for each in wide]
    pinned = [torch.from_numpy(each).pin_memory() for each in wide]
    turn = 0

    def loss_of():
        nonlocal turn
        turn = 1 - turn
        x = (pinned if fault else narrow)[turn].to(on.device, non_blocking=True).float()
        with on.autocast():
            return model(x).float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


# ---- Numbers too small to be normal ----


def decayed(on: Machine, fault: bool) -> Step:
    """Leaky neurons whose traces fade: without input for long, they are denormal, or set to zero below a threshold."""
    neurons, fading = on.size(4096, 4096), 24
    start = torch.full((on.size(64, 48), neurons), 1e-39 if fault else 0.0, device=on.device)
    weights = nn.Linear(neurons, 10).to(on.device)

    @torch.no_grad()
    def step():
        trace = start.clone()
        total = torch.zeros_like(trace)
        for _ in range(fading):
            trace.mul_(0.99)
            total.add_(trace)
        return weights(total)

    return step


def faint(on: Machine, fault: bool) -> Step:
    """A filter bank over a recording that ends in near silence; the fixed program rounds what nobody hears to zero."""
    count, length = on.size(16, 8), on.size(16_384, 8192)
    model = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4, bias=False), nn.ReLU(), nn.Conv1d(16, 16, 9, bias=False))
    model = model.to(on.device).eval()
    quiet = 1e-38 * torch.randn(count, 1, length, device=on.device)

    @torch.inference_mode()
    def step():
        x = quiet if fault else torch.where(quiet.abs() < 1e-30, 0, quiet)
        return (model(x) * 0.5).abs().cumsum(-1).mean(-1)

    return step


PROGRAMS = {
    "classifier-left-on-the-cpu": Program(
        classifier_left_behind,
        ("device-unused",),
        says="a GPU is there, and nothing runs on it: model and data were never moved",
    ),
    "encoder-left-on-the-cpu": Program(
        encoder_left_behind,
        ("device-unused",),
        says="a GPU is there, and nothing runs on it: model and data were never moved",
    ),
    "table-row-by-row": Program(
        churn,
        ("input-bound",),
        near=("host-code", "launch-overhead", "repeated-operators"),
        says="a DataLoader over a TensorDataset indexes row by row and stacks; index the tensors by batch",
    ),
    "windows-cut-one-by-one": Program(
        series,
        ("input-bound", "repeated-operators"),
        near=("host-code", "launch-overhead"),
        says="a dataset that cuts and scales each window by itself, where the model is; cut a batch by one index",
    ),
    "targets-sent-tensor-by-tensor": Program(
        detected,
        ("small-copies", "repeated-operators"),
        near=("pageable-copies", "launch-overhead", "constant-copies", "host-sync"),
        says="256 small copies to the device in every step; pack them, copy once, split there",
    ),
    "molecules-sent-one-by-one": Program(
        molecules,
        ("small-copies", "repeated-operators"),
        near=("pageable-copies", "launch-overhead", "constant-copies", "host-sync"),
        says="512 small copies to the device in every step; join them, copy once",
    ),
    "photos-sent-as-floats": Program(
        photos,
        ("wide-copies", "host-compute"),
        near=("exposed-copies", "pageable-copies"),
        says="bytes become floats on the host, which takes time there and four times the copy; convert on the device",
    ),
    "readings-sent-as-doubles": Program(
        readings,
        ("wide-copies",),
        near=("exposed-copies", "pageable-copies", "dtype-ping-pong"),
        says="doubles are copied and cut to float on the device: twice the copy; convert once before",
    ),
    "traces-that-fade-to-denormals": Program(
        decayed,
        ("denormals",),
        near=("dominant-operator", "pointwise-unfused"),
        says="numbers below 1.2e-38 cost a CPU many cycles each; torch.set_flush_denormal(True), or a threshold",
    ),
    "silence-filtered-in-denormals": Program(
        faint,
        ("denormals",),
        near=("dominant-operator", "pointwise-unfused"),
        says="numbers below 1.2e-38 cost a CPU many cycles each; torch.set_flush_denormal(True), or a threshold",
    ),
}

KEPT = {
    "encoder-left-on-the-cpu",
    "windows-cut-one-by-one",
    "molecules-sent-one-by-one",
    "readings-sent-as-doubles",
    "silence-filtered-in-denormals",
}

ON_GPU_ONLY = {
    "classifier-left-on-the-cpu",
    "encoder-left-on-the-cpu",
    "targets-sent-tensor-by-tensor",
    "molecules-sent-one-by-one",
    "photos-sent-as-floats",
    "readings-sent-as-doubles",
}
