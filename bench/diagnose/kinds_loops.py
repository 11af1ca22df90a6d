"""Loops around a model: evaluation, logging, copies, frameworks. Programs of the library (library.py).

Each comes with one planted fault, and mended."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, gpt
from record_truth import Gpt


def small_gpt(on: Machine, layers: int = 6, width: int = 512) -> Gpt:
    return Gpt(layers if on.is_gpu else 2, on.size(width, 64), max(1, on.size(width, 64) // 64), on.size(8192, 100)).to(
        on.device
    )


def words(on: Machine, batch: int = 8, length: int = 256) -> torch.Tensor:
    return torch.randint(0, 100, (on.size(batch, 2), on.size(length, 16) + 1), device=on.device)


def loss_of(on: Machine, model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    with on.autocast():
        return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def evaluation(on: Machine, fault: bool) -> Step:
    """Losses of a validation set with a graph for a backward pass that never comes."""
    model, tokens = small_gpt(on, layers=8, width=256).eval(), words(on)

    def step():
        with torch.set_grad_enabled(fault):
            return loss_of(on, model, tokens).detach()

    return step


def norms(on: Machine, fault: bool) -> Step:
    """The norm of every gradient read by itself for a log; mended by reading all of them at once."""
    model, tokens = small_gpt(on, layers=10), words(on)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    log: dict[str, float] = {}

    def step():
        optimizer.zero_grad()
        loss_of(on, model, tokens).backward()
        named = [(name, each.grad) for name, each in model.named_parameters() if each.grad is not None]
        if fault:
            for name, grad in named:
                log[name] = grad.norm().item()
        else:
            log.update(
                zip(
                    [name for name, _ in named],
                    torch.stack(torch._foreach_norm([g for _, g in named])).tolist(),
                    strict=True,
                )
            )
        optimizer.step()

    return step


def bias_from_host(on: Machine, fault: bool) -> Step:
    """A bias by distance, computed by CPU operators and copied in every step; mended by keeping it on the device."""
    length, heads = on.size(1024, 64), on.size(16, 2)
    width = heads * 64
    layer = nn.Linear(width, 3 * width).to(on.device)
    data = torch.randn(4, length, width, device=on.device)

    def bias():
        place = torch.arange(length)
        distance = (place[:, None] - place[None, :]).abs().float()
        slopes = torch.logspace(0, -2, heads)[:, None, None]
        return (-distance[None] * slopes).masked_fill(place[:, None] < place[None, :], float("-inf")).to(on.device)

    kept = bias()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        with on.autocast():
            q, k, v = layer(data).view(4, length, 3, heads, 64).permute(2, 0, 3, 1, 4)
            mask = (bias() if fault else kept).to(q.dtype)
            out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out.square().mean().backward()
        optimizer.step()

    return step


def batch_of_many(on: Machine, fault: bool) -> Step:
    """A batch of twelve tensors from pageable memory, each copy waited for; mended by pinned, non-blocking copies."""
    rows, width = on.size(16_384, 64), on.size(256, 16)
    batch = {f"column{i}": torch.randn(rows, width) for i in range(12)}
    if on.is_gpu and not fault:
        batch = {name: each.pin_memory() for name, each in batch.items()}
    model = nn.Sequential(nn.Linear(12 * width, 2048), nn.ReLU(), nn.Linear(2048, 1)).to(on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        here = {name: each.to(on.device, non_blocking=not fault) for name, each in batch.items()}
        optimizer.zero_grad()
        with on.autocast():
            loss = model(torch.cat(list(here.values()), dim=1)).square().mean()
        loss.backward()
        optimizer.step()

    return step


def scaler(on: Machine, fault: bool) -> Step:
    """fp16 with a GradScaler and a clipped norm that is checked on the host; mended by bf16 and a norm nobody reads."""
    model, tokens = small_gpt(on, layers=8, width=768), words(on, 16, 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    scaled = torch.amp.GradScaler(on.device, enabled=fault and on.is_gpu)

    def step():
        optimizer.zero_grad()
        with torch.autocast(on.device, dtype=torch.float16 if fault else torch.bfloat16, enabled=on.is_gpu):
            loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        scaled.scale(loss).backward()
        scaled.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
        if fault and not all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None):
            return
        scaled.step(optimizer)
        scaled.update()

    return step


def kept_losses(on: Machine, fault: bool) -> Step:
    """The scores of every step kept for a later look, in a program that waits for its host."""
    model, tokens = small_gpt(on, layers=8, width=256), words(on, 4, 128)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    history: list[torch.Tensor] = []

    def step():
        optimizer.zero_grad()
        with on.autocast():
            scores = model(tokens[:, :-1])
            loss = functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        history.append(scores.detach() if fault else loss.detach())

    return step


def rare_wait(on: Machine, fault: bool) -> Step:
    """One step in eight waits for a file. Few steps are recorded: the slow ones are only timed."""
    train = gpt(on, layers=2, width=512, batch=8, length=256)
    count = 0

    def step():
        nonlocal count
        count += 1
        train()
        if fault and count % 8 == 0:
            time.sleep(0.08)

    return step


def closure(on: Machine, fault: bool) -> Step:
    """As Lightning does it: forward and backward run inside optimizer.step, here with one tensor updated at a time."""
    model, tokens = small_gpt(on, layers=6), words(on)
    how: dict[str, Any] = {"foreach": False} if fault else {"fused": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **how)

    def of_batch():
        optimizer.zero_grad()
        loss = loss_of(on, model, tokens)
        loss.backward()
        return loss

    def step():
        return optimizer.step(of_batch)

    return step


def trainer(on: Machine, fault: bool) -> Step:
    """As a trainer does it: four parts of a batch, a loss that is checked and added up on the host after each."""
    model = small_gpt(on, layers=6, width=768)
    parts = [words(on, 8, 512) for _ in range(4)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    total = torch.zeros((), device=on.device)
    log: list[float] = []

    def step():
        for part in parts:
            loss = loss_of(on, model, part) / len(parts)
            loss.backward()
            if fault:
                if torch.isnan(loss) or torch.isinf(loss):
                    raise ValueError("the loss is no number")
                log.append(loss.item())
            else:
                total.add_(loss.detach())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


PROGRAMS = {
    "evaluation-with-gradients": Program(evaluation, ("unused-gradients",)),
    "log-every-norm": Program(norms, ("host-sync",), near=("launch-overhead",)),
    "bias-built-on-host": Program(bias_from_host, ("host-compute",), near=("pageable-copies",)),
    "copies-unpinned": Program(batch_of_many, ("pageable-copies",)),
    "scaler-checked-on-host": Program(scaler, ("host-sync",)),
    "leak-in-small-steps": Program(kept_losses, ("memory-leak",), saves_time=False),
    "slow-step-unrecorded": Program(rare_wait, ("slow-steps",), block=8),
    "closure-one-tensor-at-a-time": Program(closure, ("single-tensor-optimizer",)),
    "trainer-checks-the-loss": Program(trainer, ("host-sync",)),
}
