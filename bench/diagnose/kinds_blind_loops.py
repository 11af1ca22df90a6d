"""Loops of the second blind test (kinds_blind.py): speech, graphs, agents, servers, trainers, forecasts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training


class Listener(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.rnn = nn.GRU(80, width, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * width, 32)

    def forward(self, sounds):
        return self.out(self.rnn(sounds)[0]).mean(1)


def speech(on: Machine, fault: bool) -> Step:
    """Utterances of one length, each through the recurrent network by itself, or all in one batch."""
    model = Listener(on.size(512, 48)).to(on.device)
    sounds = torch.randn(on.size(32, 8), on.size(100, 20), 80, device=on.device)
    labels = torch.arange(len(sounds), device=on.device) % 32

    def loss_of():
        scores = torch.cat([model(each[None]) for each in sounds]) if fault else model(sounds)
        return functional.cross_entropy(scores, labels)

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


class Messages(nn.Module):
    """Means of the neighbours' values; edges sorted by target so that `segment_reduce` can take them."""

    def __init__(self, width: int, sorts: bool):
        super().__init__()
        self.weight, self.own, self.sorts = nn.Linear(width, width), nn.Linear(width, width), sorts

    def forward(self, x, edges, counts):
        sources, targets = edges
        if self.sorts:
            targets, order = targets.sort(stable=True)
            sources = sources[order]
            counts = torch.bincount(targets, minlength=len(x)).clamp(min=1).to(x.dtype)
        sums = torch.zeros_like(x).index_add(0, targets, x[sources])
        return functional.relu(self.weight(sums / counts[:, None]) + self.own(x))


def graph(on: Machine, fault: bool) -> Step:
    """The graph never changes, yet every layer sorts its edges and counts its neighbours again."""
    nodes, count, width = on.size(20_000, 1000), on.size(4_000_000, 30_000), on.size(16, 16)
    model = nn.ModuleList([Messages(width, fault) for _ in range(3)]).to(on.device)
    edges = torch.randint(0, nodes, (2, count), device=on.device)
    targets, order = edges[1].sort(stable=True)
    ordered = torch.stack((edges[0][order], targets))
    counts = torch.bincount(targets, minlength=nodes).clamp(min=1).float()
    x = torch.randn(nodes, width, device=on.device)

    def loss_of():
        hidden = x
        for layer in model:
            hidden = layer(hidden, edges if fault else ordered, counts)
        return hidden.square().mean()

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


def replay(on: Machine, fault: bool) -> Step:
    """An agent learns from what it remembers: a Python list of CPU tensors, or one tensor on the device."""
    states, size, width = on.size(256, 64), on.size(2048, 384), on.size(512, 64)
    drawn = random.Random(0)
    memory = [(torch.randn(states), i % 8, float(i % 3)) for i in range(4 * size)]
    table = torch.stack([state for state, _, _ in memory]).to(on.device)
    actions = torch.tensor([action for _, action, _ in memory], device=on.device)
    rewards = torch.tensor([reward for _, _, reward in memory], device=on.device)
    model = nn.Sequential(
        nn.Linear(states, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
    ).to(on.device)

    def loss_of():
        if fault:
            samples = drawn.sample(memory, size)
            seen = torch.stack([state for state, _, _ in samples]).to(on.device)
            action = torch.tensor([action for _, action, _ in samples]).to(on.device)
            reward = torch.tensor([reward for _, _, reward in samples]).to(on.device)
        else:
            which = torch.randint(0, len(table), (size,), device=on.device)
            seen, action, reward = table[which], actions[which], rewards[which]
        return (model(seen).gather(1, action[:, None]).squeeze(1) - reward).square().mean()

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


def served(on: Machine, fault: bool) -> Step:
    """Two models answer each request on streams of their own; with the fault each waits for the other after a layer.

    Their scans along time leave most of the device free.
    """
    layers = 24
    streams = [torch.cuda.Stream() for _ in range(2)]
    gates = [torch.rand(layers, 32, 8192, device=on.device) for _ in streams]
    requests = [torch.randn(32, 8192, device=on.device) for _ in streams]

    @torch.inference_mode()
    def step():
        here = torch.cuda.current_stream()
        answers = list(requests)
        for stream in streams:
            stream.wait_stream(here)
        for i in range(layers):
            for which, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    answers[which] = torch.logcumsumexp(answers[which] * gates[which][i], dim=1).sin()
                    if fault:
                        streams[1 - which].wait_stream(stream)
        for stream in streams:
            here.wait_stream(stream)
        return answers[0] + answers[1]

    return step


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


def clipped_by_hand(parameters: list[nn.Parameter], most: float) -> None:
    total = 0.0
    gradients = [each.grad for each in parameters if each.grad is not None]
    for gradient in gradients:
        total += gradient.norm().item() ** 2
    scale = min(1.0, most / (total**0.5 + 1e-6))
    for gradient in gradients:
        gradient.mul_(scale)


class Trainer:
    """A trainer as libraries have it: callbacks around a step, the step in a closure."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, clip: Callable[[], Any]):
        self.model, self.optimizer, self.clip = model, optimizer, clip
        self.seen = 0

    def on_step_end(self, loss: Any) -> None:
        self.seen += 1
        self.last = loss.detach()

    def fit(self, loss_of: Callable[[], torch.Tensor]) -> None:
        def closure():
            self.optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            self.clip()
            return loss

        self.on_step_end(self.optimizer.step(closure))


def trainer(on: Machine, fault: bool) -> Step:
    width = on.size(256, 32)
    model = nn.Sequential(*[Residual(width) for _ in range(on.size(24, 12))]).to(on.device)
    data = torch.randn(on.size(64, 8), width, device=on.device)
    parameters = list(model.parameters())

    def clip():
        if fault:
            clipped_by_hand(parameters, 1.0)
        else:
            nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

    loop = Trainer(model, torch.optim.AdamW(parameters, lr=1e-4, fused=True), clip)
    return lambda: loop.fit(lambda: model(data).square().mean())


def many_losses(on: Machine, fault: bool) -> Step:
    """Six tasks share a trunk: a backward pass for each of their losses, or one for the sum."""
    width, tasks = on.size(1024, 96), 6
    trunk = nn.Sequential(*[Residual(width) for _ in range(on.size(8, 4))]).to(on.device)
    heads = nn.ModuleList([nn.Linear(width, 16) for _ in range(tasks)]).to(on.device)
    data = torch.randn(on.size(8192, 48), width, device=on.device)
    optimizer = torch.optim.AdamW([*trunk.parameters(), *heads.parameters()], lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        with on.autocast():
            hidden = trunk(data)
            losses = [head(hidden).float().square().mean() for head in heads]
        if fault:
            for loss in losses:
                loss.backward(retain_graph=True)
        else:
            torch.stack(losses).sum().backward()
        optimizer.step()

    return step


def forecast(on: Machine, fault: bool) -> Step:
    """Series that came from NumPy are float64, and a model was made to fit them."""
    dtype = torch.float64 if fault else torch.float32
    width = on.size(512, 48)
    lags = torch.randn(on.size(4096, 96), on.size(256, 64), dtype=dtype, device=on.device)
    model = nn.Sequential(nn.Linear(lags.shape[1], width), *[Residual(width) for _ in range(4)], nn.Linear(width, 24))
    model = model.to(on.device, dtype)

    def loss_of():
        return model(lags).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def transducer(on: Machine) -> Step:
    """An LSTM over many utterances at once: a fused kernel of cuDNN's does it all."""
    model = nn.LSTM(80, on.size(1024, 64), num_layers=2, batch_first=True).to(on.device, on.half)
    sounds = torch.randn(on.size(256, 16), on.size(100, 20), 80, device=on.device, dtype=on.half)

    def loss_of():
        return model(sounds)[0].float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "speech-one-utterance-at-a-time": Program(
        speech,
        ("repeated-operators", "small-batch"),
        near=("launch-overhead",),
        says="a recurrent network runs once for each utterance; one batch would do",
    ),
    "graph-sorted-in-every-layer": Program(
        graph,
        ("dominant-operator",),
        near=("pointwise-unfused",),
        says="edges that never change are sorted in every layer of every step",
    ),
    "agent-replay-stacked-on-host": Program(
        replay,
        ("host-compute", "host-code", "dominant-operator", "repeated-operators"),
        near=("input-bound", "pageable-copies", "launch-overhead"),
        says="a batch is put together from a Python list of CPU tensors",
    ),
    "server-streams-wait-in-turn": Program(
        served,
        ("stream-waits",),
        near=("launch-overhead", "small-batch"),
        says="two streams that could run side by side wait for each other after every layer",
    ),
    "trainer-clips-by-hand": Program(
        trainer,
        ("host-sync", "repeated-operators"),
        near=("launch-overhead",),
        says="each gradient's norm is read by the host; clip_grad_norm_ with foreach does without",
    ),
    "tasks-backward-for-each-loss": Program(
        many_losses,
        ("repeated-backward", "repeated-operators"),
        near=("launch-overhead",),
        says="the backward pass of the shared trunk runs six times; once for the sum of the losses does the same",
    ),
    "forecast-in-double": Program(
        forecast,
        ("fp64-compute", "fp32-matmul"),
        near=("tensor-cores-unused", "dominant-operator"),
        says="everything is computed in float64, which came with the data",
    ),
    "healthy-lstm": Program(
        lambda on, _: transducer(on), (), says="cuDNN's recurrent kernels: nothing that a setting would change"
    ),
}

ON_GPU_ONLY = {"server-streams-wait-in-turn"}
