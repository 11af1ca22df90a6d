"""Common trouble with loops, logs and settings (library.py, COMMON), each with one planted fault and mended.

Each kind has two programs: one to write and tune rules with, and one in KEPT, which is scored and never tuned with.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer, stack, to_device
from kinds_next import perceptron

# ---- Distributions that check their arguments ----


def proximal(on: Machine, fault: bool) -> Step:
    """An update of PPO with normal distributions; whether their arguments are valid is asked each time."""
    sees, does, width, count = on.size(64, 12), on.size(8, 4), on.size(512, 48), on.size(4096, 64)
    actor, critic = perceptron(on, sees, width, width, does), perceptron(on, sees, width, width, 1)
    spread = nn.Parameter(torch.zeros(does, device=on.device))
    seen, done = torch.randn(count, sees, device=on.device), torch.randn(count, does, device=on.device)
    gained, wanted = torch.randn(count, device=on.device), torch.randn(count, 1, device=on.device)
    before = torch.randn(count, device=on.device)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters(), spread], lr=3e-4, fused=True)

    def loss_of():
        policy = Normal(actor(seen), spread.exp(), validate_args=fault)
        ratio = (policy.log_prob(done).sum(-1) - before).clamp(-1, 1).exp()
        clipped = torch.min(ratio * gained, ratio.clamp(0.8, 1.2) * gained).mean()
        return functional.mse_loss(critic(seen), wanted) - clipped - 0.01 * policy.entropy().mean()

    def step():
        for _ in range(4):
            optimizer.zero_grad(set_to_none=True)
            loss_of().backward()
            optimizer.step()

    return step


def rolled(on: Machine, fault: bool) -> Step:
    """A policy draws moves from categorical distributions for many games at once, move after move."""
    games, moves, width = on.size(1024, 32), on.size(32, 8), on.size(512, 48)
    policy = perceptron(on, 32, width, width, moves)
    turns = torch.randn(32, moves, device=on.device)

    @torch.no_grad()
    def step():
        state, total = torch.zeros(games, 32, device=on.device), torch.zeros(games, device=on.device)
        for _ in range(on.size(16, 12)):
            chances = Categorical(logits=policy(state), validate_args=fault)
            move = chances.sample()
            total += chances.log_prob(move)
            state = (state + turns.T[move]).tanh()
        return total

    return step


# ---- One parameter at a time ----


def tower(on: Machine, depth: int) -> nn.Module:
    width = on.size(256, 24)
    return perceptron(on, width, *[width] * depth)


def penalized(on: Machine, fault: bool) -> Step:
    """A penalty on the squares of all weights, summed parameter by parameter, or left to the optimizer."""
    model = tower(on, 24)
    data = torch.randn(on.size(1024, 32), on.size(256, 24), device=on.device)
    decay = 0.0 if fault else 2e-4
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=decay, foreach=True)

    def loss_of():
        loss = model(data).square().mean()
        if fault:
            for each in model.parameters():
                loss = loss + 1e-4 * torch.norm(each, 2) ** 2
        return loss

    return training(loss_of, optimizer)


def noised(on: Machine, fault: bool) -> Step:
    """Gradients are averaged and get noise, parameter by parameter, or all together."""
    model = tower(on, 24)
    data = torch.randn(on.size(1024, 32), on.size(256, 24), device=on.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)

    @torch.no_grad()
    def change():
        grads: Any = [each.grad for each in model.parameters()]
        if fault:
            for each in grads:
                each.div_(4)
                each.clamp_(-1, 1)
                each.mul_(0.9)
        else:
            torch._foreach_div_(grads, 4)
            torch._foreach_clamp_min_(grads, -1)
            torch._foreach_clamp_max_(grads, 1)
            torch._foreach_mul_(grads, 0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        change()
        optimizer.step()

    return step


# ---- The collector is called in every step ----


def recorded(count: int) -> list[dict[str, Any]]:
    """What a program keeps in Python: rows of a log, settings, names."""
    return [{"step": i, "name": str(i), "values": [float(i)] * 3} for i in range(count)]


def tidied(on: Machine, fault: bool) -> Step:
    """Training that runs out of memory elsewhere: gc.collect() after every step, as somebody advised."""
    kept = recorded(60_000)
    width = on.size(1024, 48)
    model = perceptron(on, width, 2 * width, 2 * width, width)
    data = torch.randn(on.size(4096, 64), width, device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(_kept=kept):
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        if fault:
            gc.collect()

    return step


def tidied_requests(on: Machine, fault: bool) -> Step:
    """A service answers requests and collects garbage after each."""
    kept = recorded(50_000)
    width = on.size(768, 48)
    model = Transformer(width, on.size(12, 2), on.size(4, 2)).to(on.device, on.half).eval()
    request = torch.randn(on.size(8, 2), on.size(128, 16), width, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step(_kept=kept):
        for _ in range(2):
            answer = model(request).mean(1).float().cpu()
            if fault:
                del answer
                gc.collect()

    return step


# ---- Weights that are brought to the host in every step ----


def safest(on: Machine, fault: bool) -> Step:
    """The weights of the best step so far are kept on the host; here every step is the best, or every hundredth."""
    width = on.size(1024, 96)
    model = perceptron(on, width, *[width] * 8)
    data = torch.randn(on.size(2048, 32), width, device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    best: dict[str, torch.Tensor] = {}
    number = 0

    def step():
        nonlocal number
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        number += 1
        if fault:
            best.update({key: value.detach().cpu().clone() for key, value in model.state_dict().items()})

    return step


def watched(on: Machine, fault: bool) -> Step:
    """Histograms of all gradients for a dashboard: by NumPy in every step, or by the device and never read here."""
    width = on.size(512, 48)
    model = perceptron(on, width, *[width] * 10)
    data = torch.randn(on.size(2048, 32), width, device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    shown: list[Any] = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        shown.clear()
        if fault:
            shown.extend(np.histogram(each.grad.cpu().numpy(), 64) for each in model.parameters())

    return step


# ---- Graphs that are never let go ----


def remembered(on: Machine, fault: bool) -> Step:
    """A recurrent network is trained on pieces of a text; its state still hangs on the pieces before (up to a limit
    here, so that it can be timed)."""
    width, length, limit = on.size(512, 32), 8, 24
    cell, head = nn.GRU(width, width, batch_first=True).to(on.device), nn.Linear(width, width).to(on.device)
    data = torch.randn(on.size(64, 8), length, width, device=on.device)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.0)
    state: Any = None
    number = 0

    def step():
        nonlocal state, number
        number += 1
        if state is not None and (not fault or number % limit == 0):
            state = state.detach()
        optimizer.zero_grad(set_to_none=True)
        found, state = cell(data, state)
        functional.mse_loss(head(found), data).backward(retain_graph=fault)

    return step


def summed(on: Machine, fault: bool) -> Step:
    """The loss since the last report is a sum that keeps its graph, and all of it is differentiated again."""
    width, limit = on.size(512, 32), 24
    model = perceptron(on, width, *[width] * 6)
    data = torch.randn(on.size(1024, 16), width, device=on.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    total: Any = torch.zeros((), device=on.device)
    number = 0

    def step():
        nonlocal total, number
        number += 1
        optimizer.zero_grad(set_to_none=True)
        loss = model(data).square().mean()
        total = total + (loss if fault else loss.detach())
        (total / number if fault else loss).backward(retain_graph=fault)
        if number % limit == 0:
            total = torch.zeros((), device=on.device)

    return step


# ---- Too little work for a GPU ----


def balanced(on: Machine, fault: bool) -> Step:
    """A policy of two small layers acts in one game, move by move; the game itself runs on the host."""
    where = on if fault else Machine("cpu")
    policy = perceptron(where, 4, 64, 64, 2)

    @torch.no_grad()
    def step():
        state = [0.0, 0.1, 0.02, 0.0]
        for _ in range(40):
            push = policy(torch.tensor([state], device=where.device)).argmax(-1).item()
            state = [0.9 * value + 0.01 * (push - 0.5) for value in state]
        return state

    return step


def regressed(on: Machine, fault: bool) -> Step:
    """A regression on thirteen columns is fitted row after row, as its data comes in."""
    where = on if fault else Machine("cpu")
    model = perceptron(where, 13, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    rows = [([0.1 * i + 0.01 * j for j in range(13)], 0.3 * i) for i in range(16)]

    def step():
        for row, price in rows:
            x, y = torch.tensor([row], device=where.device), torch.tensor([[price]], device=where.device)
            optimizer.zero_grad(set_to_none=True)
            functional.mse_loss(model(x), y).backward()
            optimizer.step()

    return step


# ---- cuDNN tries all algorithms for every new size ----


def sized(on: Machine, fault: bool) -> Step:
    """Images come in sizes of their own, with cudnn.benchmark on: each new size is a search."""
    width = 64
    model: Any = to_device(nn.Sequential(*stack(3, width, width), nn.AdaptiveAvgPool2d(1), nn.Flatten()), on)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    number = 0

    def step():
        nonlocal number
        number += 1
        torch.backends.cudnn.benchmark = fault
        image = torch.randn(4, 3, 96 + number % 211, 96 + number // 211, device=on.device)
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = model(image.to(memory_format=torch.channels_last)).float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def heard(on: Machine, fault: bool) -> Step:
    """Recordings of any length are cleaned by a stack of convolutions, with cudnn.benchmark on."""
    model: Any = nn.Sequential(nn.Conv1d(1, 64, 9), nn.ReLU(), nn.Conv1d(64, 64, 9, 2), nn.ReLU(), nn.Conv1d(64, 64, 9))
    model = model.to(on.device).eval()
    number = 0

    @torch.inference_mode()
    def step():
        nonlocal number
        number += 1
        torch.backends.cudnn.benchmark = fault
        return model(torch.randn(8, 1, 8000 + 3 * number, device=on.device)).mean()

    return step


PROGRAMS = {
    "proximal-policy-validated": Program(
        proximal,
        ("host-sync", "checked-values"),
        near=("launch-overhead", "repeated-operators"),
        says="torch.distributions checks its arguments and reads the answer each time; validate_args=False",
    ),
    "moves-drawn-with-checks": Program(
        rolled,
        ("host-sync", "checked-values"),
        near=("launch-overhead", "repeated-operators"),
        says="torch.distributions checks its arguments and reads the answer each time; validate_args=False",
    ),
    "penalty-parameter-by-parameter": Program(
        penalized,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="squares of all weights are summed tensor by tensor; weight_decay of the optimizer, or _foreach_norm",
    ),
    "gradients-changed-one-by-one": Program(
        noised,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="each gradient is divided, clamped and scaled by itself; torch._foreach_ operators do all at once",
    ),
    "collected-after-every-step": Program(
        tidied,
        ("gc-pauses",),
        near=("host-code",),
        says="gc.collect() in every step walks all Python objects; leave it out",
    ),
    "collected-after-every-request": Program(
        tidied_requests,
        ("gc-pauses",),
        near=("host-code",),
        says="gc.collect() after each request walks all Python objects; leave it out",
    ),
    "best-weights-copied-in-every-step": Program(
        safest,
        ("weights-to-host", "copied-modules"),
        near=("host-sync", "host-compute", "whole-copies", "repeated-operators"),
        says="all weights are copied to the host, tensor by tensor, in every step; do so every few hundred steps",
    ),
    "histograms-of-all-gradients": Program(
        watched,
        ("weights-to-host", "host-code", "host-compute"),
        near=("host-sync", "repeated-operators"),
        says="all gradients go to the host for histograms by NumPy; torch.histc there, and every few hundred steps",
    ),
    "state-that-keeps-its-graph": Program(
        remembered,
        ("growing-steps", "growing-backward"),
        near=("memory-leak", "slow-steps"),
        block=24,
        recorded=8,
        says="the backward pass runs through all pieces before, too; detach the state",
    ),
    "loss-summed-with-its-graph": Program(
        summed,
        ("growing-steps", "growing-backward"),
        near=("memory-leak", "slow-steps"),
        block=24,
        recorded=8,
        says="the backward pass runs through all steps before, too; sum loss.detach()",
    ),
    "policy-of-one-on-a-gpu": Program(
        balanced,
        ("small-for-device",),
        near=("launch-overhead", "host-sync", "constant-copies", "repeated-operators"),
        says="the network is so small that a CPU computes it before a GPU has started; move it there",
    ),
    "rows-fitted-on-a-gpu": Program(
        regressed,
        ("small-for-device",),
        near=("launch-overhead", "host-sync", "constant-copies", "repeated-operators", "small-batch"),
        says="the network is so small that a CPU computes it before a GPU has started; move it there",
    ),
    "sizes-benchmarked-one-by-one": Program(
        sized,
        ("cudnn-searches", "cudnn-benchmark"),
        near=("launch-overhead", "dominant-operator"),
        says="cudnn.benchmark with sizes that never come again: each costs a search; switch it off, or pad sizes",
    ),
    "lengths-benchmarked-one-by-one": Program(
        heard,
        ("cudnn-searches", "cudnn-benchmark"),
        near=("launch-overhead", "dominant-operator"),
        says="cudnn.benchmark with sizes that never come again: each costs a search; switch it off, or pad sizes",
    ),
}

KEPT = {
    "moves-drawn-with-checks",
    "gradients-changed-one-by-one",
    "collected-after-every-request",
    "histograms-of-all-gradients",
    "loss-summed-with-its-graph",
    "rows-fitted-on-a-gpu",
    "lengths-benchmarked-one-by-one",
}

ON_GPU_ONLY = {
    "policy-of-one-on-a-gpu",
    "rows-fitted-on-a-gpu",
    "sizes-benchmarked-one-by-one",
    "lengths-benchmarked-one-by-one",
}
