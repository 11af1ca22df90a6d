"""Recommenders, speech, experts, reinforcement learning, graphs and a server: programs of the library (library.py).

Each comes with one planted fault, and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from record_truth import Gpt


class Tables(nn.Module):
    """64 columns of ids; a table for each, or one for all, with an offset for each column."""

    def __init__(self, rows: int, width: int, apart: bool):
        super().__init__()
        self.apart = apart
        if apart:
            self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(64)])
        else:
            self.table = nn.Embedding(64 * rows, width)
            self.register_buffer("begins", torch.arange(64) * rows)
        self.top = nn.Sequential(nn.Linear(64 * width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, ids):
        if self.apart:
            parts = [table(ids[:, i : i + 1]) for i, table in enumerate(self.tables)]
            return self.top(torch.cat(parts, dim=1))
        return self.top(self.table(ids + self.begins).flatten(1))


def tables(on: Machine, fault: bool) -> Step:
    model = Tables(on.size(20_000, 100), 16, fault).to(on.device)
    ids = torch.randint(0, on.size(20_000, 100), (on.size(4096, 64), 64), device=on.device)
    clicks = torch.rand(len(ids), 1, device=on.device)
    return training(
        lambda: functional.binary_cross_entropy_with_logits(model(ids), clicks),
        torch.optim.SGD(model.parameters(), lr=0.1),
    )


class Loop(nn.Module):
    """An LSTM written as a loop over time."""

    def __init__(self, width: int):
        super().__init__()
        self.cell, self.width = nn.LSTMCell(width, width), width

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.width)
        out = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            out.append(h)
        return torch.stack(out, dim=1)


class Recurrent(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def recurrence(on: Machine, fault: bool) -> Step:
    width = on.size(256, 16)
    model = nn.Sequential(Loop(width) if fault else Recurrent(width), nn.Linear(width, 32)).to(on.device)
    frames = torch.randn(16, on.size(128, 40), width, device=on.device)
    return training(lambda: model(frames).square().mean(), torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def spectrogram(on: Machine, fault: bool) -> Step:
    """The spectrogram is computed on the CPU and copied; mended by copying the sound."""
    sound = torch.randn(on.size(16, 4), on.size(160_000, 4_000))
    sound = sound.pin_memory() if on.is_gpu and not fault else sound
    window = torch.hann_window(400, device="cpu" if fault else on.device)
    layers = [nn.Conv1d(201 if i == 0 else 256, 256, 5, padding=2) for i in range(8)]
    model = nn.Sequential(*[each for layer in layers for each in (layer, nn.GELU())]).to(on.device)

    def loss_of():
        x = sound if fault else sound.to(on.device, non_blocking=True)
        x = torch.stft(x, 400, 160, window=window, return_complex=True).abs().log1p().to(on.device)
        with on.autocast():
            return model(x).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Experts(nn.Module):
    """A loop over experts with boolean masks, or sorted tokens in slots of one size and one batched product."""

    def __init__(self, width: int, experts: int, loop: bool):
        super().__init__()
        self.router, self.loop = nn.Linear(width, experts), loop
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / width**0.5)

    def forward(self, x):
        weight, which = self.router(x).softmax(-1).max(-1)
        if self.loop:
            out = torch.zeros_like(x)
            for i in range(len(self.up)):
                mask = which == i
                if mask.any():
                    out[mask] = functional.gelu(x[mask] @ self.up[i]) @ self.down[i] * weight[mask, None]
            return x + out
        slots = 2 * len(x) // len(self.up)
        order = which.argsort(stable=True)
        first = torch.searchsorted(which[order], torch.arange(len(self.up), device=x.device))
        place = torch.arange(len(x), device=x.device) - first[which[order]]
        inside = place.clamp(max=slots - 1) + which[order] * slots
        grouped = x.new_zeros(len(self.up) * slots, x.shape[1]).index_copy(0, inside, x[order])
        hidden = functional.gelu(torch.bmm(grouped.view(len(self.up), slots, -1), self.up))
        out = torch.bmm(hidden, self.down).view(-1, x.shape[1])[inside]
        return x + torch.zeros_like(x).index_copy(0, order, out) * weight[:, None]


def experts(on: Machine, fault: bool) -> Step:
    width = on.size(512, 32)
    model = nn.Sequential(*[Experts(width, on.size(32, 8), fault) for _ in range(2)]).to(on.device)
    tokens = torch.randn(on.size(4096, 256), width, device=on.device)

    def loss_of():
        return model(tokens).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True))


def rollout(on: Machine, fault: bool) -> Step:
    """32 environments asked one after another, each action read by itself; mended by one batch and one copy."""
    policy = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)).to(
        on.device
    )
    states = torch.randn(32, 64)

    @torch.no_grad()
    def step():
        for _ in range(4):
            if fault:
                actions = [policy(state.to(on.device)).argmax().item() for state in states]
            else:
                actions = policy(states.to(on.device)).argmax(-1).tolist()
            states.add_(torch.tensor(actions, dtype=torch.float32)[:, None] * 0.01).clamp_(-1, 1)

    return step


def messages(on: Machine, fault: bool) -> Step:
    """Messages of a graph summed for each of 96 kinds of edges in turn; mended by one index_add over all."""
    nodes, edges, width, kinds = on.size(20_000, 200), on.size(2_000, 50), on.size(64, 8), 96
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(on.device)
    features = torch.randn(nodes, width, device=on.device)
    pairs = torch.randint(0, nodes, (2, kinds, edges), device=on.device)
    scale = torch.rand(kinds, device=on.device)

    def loss_of():
        x = model(features)
        if fault:
            out = torch.zeros_like(x)
            for kind in range(kinds):
                out = out.index_add(0, pairs[1, kind], x[pairs[0, kind]] * scale[kind])
        else:
            weights = scale.repeat_interleave(edges, output_size=kinds * edges)[:, None]
            out = torch.zeros_like(x).index_add(0, pairs[1].flatten(), x[pairs[0].flatten()] * weights)
        return out.square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def server(on: Machine, fault: bool) -> Step:
    """24 requests that wait, answered one by one; mended by answering them together."""
    model = Gpt(4, on.size(512, 64), on.size(8, 1), on.size(8192, 100)).to(on.device, on.half).eval()
    requests = torch.randint(0, 100, (24, on.size(64, 16)))

    @torch.no_grad()
    def step():
        if fault:
            return [model(request[None].to(on.device))[:, -1].argmax(-1).tolist() for request in requests]
        return model(requests.to(on.device))[:, -1].argmax(-1).tolist()

    return step


PROGRAMS = {
    "recommender-tables": Program(tables, ("repeated-operators",), near=("launch-overhead",)),
    "speech-loop-over-time": Program(recurrence, ("repeated-operators",), near=("launch-overhead",)),
    "speech-spectrogram-on-host": Program(spectrogram, ("host-compute",), near=("pageable-copies",)),
    "experts-boolean-masks": Program(experts, ("repeated-operators", "host-sync"), near=("launch-overhead",)),
    "rl-rollout-item": Program(rollout, ("host-sync", "repeated-operators", "small-batch"), near=("launch-overhead",)),
    "graph-scatter-loop": Program(messages, ("repeated-operators",), near=("launch-overhead", "pointwise-unfused")),
    "server-batch-of-one": Program(
        server, ("small-batch", "repeated-operators"), near=("launch-overhead", "host-sync")
    ),
}
