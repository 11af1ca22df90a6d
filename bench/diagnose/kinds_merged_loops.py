"""Loops of the merged test (library.py, MERGED), around other models, each with one planted fault and mended."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Mlp, Program, Step, training
from kinds_next import perceptron

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)


def drawn_by_numpy(priorities, count: int):
    """Places of the memory, drawn by their priorities."""
    shares = priorities.cpu().numpy().astype(np.float64)
    return torch.from_numpy(np.random.choice(len(shares), count, p=shares / shares.sum())).to(priorities.device)


def drawn_by_torch(priorities, count: int):
    reached = priorities.cumsum(0)
    drawn = torch.rand(count, device=priorities.device) * reached[-1]
    return torch.searchsorted(reached, drawn).clamp_(max=len(priorities) - 1)


def replayed(on: Machine, fault: bool) -> Step:
    """A critic learns from what surprised it most."""
    size, sees, width, count = on.size(500_000, 100_000), on.size(128, 24), on.size(2048, 96), on.size(4096, 64)
    critic = perceptron(on, sees, width, width, width, width, 1)
    memory, rewards = torch.randn(size, sees, device=on.device), torch.randn(size, device=on.device)
    priorities = torch.rand(size, device=on.device) + 0.01
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, fused=True)
    drawn = drawn_by_numpy if fault else drawn_by_torch

    def step():
        places = drawn(priorities, count)
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            value = critic(memory[places])[:, 0]
        off = value.float() - rewards[places]
        off.square().mean().backward()
        optimizer.step()
        priorities[places] = off.detach().abs() + 0.01

    return step


class Columns(nn.Module):
    """Embeddings of columns of numbers: a table for each column, or one table with a part for each."""

    def __init__(self, columns: int, rows: int, width: int, apart: bool):
        super().__init__()
        self.tables: nn.ModuleList | None = None
        if apart:
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(columns))
        else:
            self.table = nn.Embedding(columns * rows, width)
            self.register_buffer("begins", torch.arange(columns) * rows)

    def forward(self, x):
        if self.tables is not None:
            return torch.cat([table(x[:, place]) for place, table in enumerate(self.tables)], dim=1)
        return self.table(x + self.begins).flatten(1)


def clicked(on: Machine, fault: bool) -> Step:
    """Clicks on advertisements are foretold from columns of categories."""
    columns, rows, width, count = on.size(36, 32), on.size(1000, 50), 16, on.size(8192, 96)
    embed = Columns(columns, rows, width, apart=fault).to(on.device)
    model = perceptron(on, columns * width, on.size(2048, 128), on.size(1024, 64), 1)
    seen = torch.randint(0, rows, (count, columns), device=on.device)
    labels = torch.randint(0, 2, (count,), device=on.device).float()

    def loss_of():
        with on.autocast():
            scores = model(embed(seen))[:, 0]
        return functional.binary_cross_entropy_with_logits(scores.float(), labels)

    return training(loss_of, torch.optim.Adam([*embed.parameters(), *model.parameters()], lr=1e-3, fused=True))


class Jacobian:
    """How the outputs of a network change with its inputs, sample by sample: (N, outputs, inputs)."""

    def __init__(self, network: nn.Module):
        self.network = network

    def row_by_row(self, x):
        x = x.detach().requires_grad_()
        y = self.network(x)
        ones = torch.ones_like(y[:, 0])
        rows = [torch.autograd.grad(y[:, i], x, ones, retain_graph=True)[0] for i in range(y.shape[1])]
        return torch.stack(rows, dim=1)

    def together(self, x):
        x = x.detach().requires_grad_()
        y = self.network(x)
        ways = torch.eye(y.shape[1], device=y.device, dtype=y.dtype)[:, None].expand(-1, len(y), -1)
        (rows,) = torch.autograd.grad(y, x, ways, is_grads_batched=True)
        return rows.transpose(0, 1)


def linearized(on: Machine, fault: bool) -> Step:
    """A learned robot is made linear around many states, to plan with it."""
    states, width = on.size(48, 20), on.size(256, 48)
    network = nn.Sequential(
        *(each for before in (states, width, width) for each in (nn.Linear(before, width), nn.Tanh())),
        nn.Linear(width, states),
    ).to(on.device)
    for each in network.parameters():
        each.requires_grad_(False)
    jacobian = Jacobian(network)
    x = torch.randn(on.size(512, 96), states, device=on.device)
    rows_of = jacobian.row_by_row if fault else jacobian.together

    def step():
        rows = rows_of(x)
        cost = torch.eye(states, device=on.device).expand(len(x), -1, -1)
        for _ in range(on.size(6, 2)):
            cost = rows.mT @ cost @ rows / states + torch.eye(states, device=on.device)
        return cost

    return step


def groups(model: nn.Module, apart: bool) -> list[dict[str, Any]]:
    """Weights decay, biases and norms do not."""
    decays: list[dict[str, Any]] = [
        {"params": [each], "weight_decay": 0.1 if each.ndim > 1 else 0.0} for each in model.parameters()
    ]
    if apart:
        return decays
    together: dict[float, list[nn.Parameter]] = {0.1: [], 0.0: []}
    for group in decays:
        together[group["weight_decay"]] += group["params"]
    return [{"params": params, "weight_decay": decay} for decay, params in together.items()]


def finetuned(on: Machine, fault: bool) -> Step:
    """A network of residual blocks is fine-tuned; weights and biases decay differently."""
    width = on.size(768, 32)
    model = nn.Sequential(*(Mlp(width, functional.gelu) for _ in range(12))).to(on.device)
    x = torch.randn(on.size(2048, 48), width, device=on.device)

    def loss_of():
        with on.autocast():
            return model(x).float().square().mean()

    return training(loss_of, torch.optim.AdamW(groups(model, apart=fault), lr=1e-4, fused=True))


def debugged(on: Machine, fault: bool) -> Step:
    """A classifier is trained, and writes to a log that nobody has switched on."""
    width, count = on.size(4096, 160), on.size(4096, 96)
    model = perceptron(on, on.size(1024, 64), width, width, width, 100)
    features = torch.randn(count, on.size(1024, 64), device=on.device)
    labels = torch.randint(0, 100, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            scores = model(features)
        loss = functional.cross_entropy(scores.float(), labels)
        if fault:
            log.debug(f"scores {scores}, loss {loss}")
        else:
            log.debug("scores %s, loss %s", scores, loss)
        return loss

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "jacobian-row-by-row": Program(
        linearized,
        ("repeated-backward",),
        near=("repeated-operators", "launch-overhead"),
        where=("Backward0", "autograd::engine", "tanh_backward"),
        says="a Jacobian by one backward pass for each output of a network; is_grads_batched, or torch.func.jacrev "
        "with vmap, does all in one",
    ),
    "memory-drawn-by-numpy": Program(
        replayed,
        ("host-code",),
        near=("host-sync", "pageable-copies", "exposed-copies", "launch-overhead", "host-compute"),
        where=("drawn_by_numpy", "Memcpy DtoH", "memcpy D2H"),
        says="priorities of all that is remembered go to the host in every step, where numpy.random.choice sums them "
        "in double precision; cumsum and searchsorted on the device",
    ),
    "columns-embedded-one-by-one": Program(
        clicked,
        ("repeated-operators",),
        near=("launch-overhead", "dense-gradients"),
        where=("aten::embedding", "embedding_dense_backward"),
        says="each column has an embedding table of its own, forward and backward; one table with offsets takes all at "
        "once",
    ),
    "group-for-each-parameter": Program(
        finetuned,
        ("many-groups", "many-optimizers"),
        near=("single-tensor-optimizer", "launch-overhead", "optimizer-share", "repeated-operators"),
        where=("_fused_adamw_", "Optimizer.step"),
        says="a parameter group for each parameter: the fused optimizer runs once for each; put those with the same "
        "settings into one group",
    ),
    "scores-formatted-for-a-silent-log": Program(
        debugged,
        ("host-sync",),
        near=("host-code", "launch-overhead", "repeated-operators"),
        where=("aten::item", "aten::_local_scalar_dense", "aten::masked_select", "_tensor_str"),
        says="an f-string formats tensors for a debug log that is off, number by number; pass them as arguments of "
        "log.debug",
    ),
}
