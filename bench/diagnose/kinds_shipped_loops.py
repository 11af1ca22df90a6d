"""Training loops of the shipped test (library.py, SHIPPED): lightning, accelerate, torchmetrics, own optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from gpu_models import Machine, Program, Step
from kinds_next import perceptron
from kinds_shipped_models import convolved, endless, lightning_steps, quiet, trained


def classifier_of(on: Machine, twice: bool) -> Any:
    quiet()
    import lightning

    class Classifier(lightning.LightningModule):
        """Logs its loss and accuracy."""

        def __init__(self):
            super().__init__()
            self.network = convolved(on, 10)

        def forward(self, images):
            return self.network(images)

        def accuracy(self, images, labels):
            return (self(images).argmax(1) == labels).float().mean()

        def training_step(self, batch, _):
            images, labels = batch
            logits = self(images)
            loss = functional.cross_entropy(logits, labels)
            accuracy = self.accuracy(images, labels) if twice else (logits.argmax(1) == labels).float().mean()
            self.log_dict({"loss": loss, "accuracy": accuracy})
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)

    return Classifier()


def logged(on: Machine, fault: bool) -> Step:
    """lightning trains a classifier of small pictures."""
    count, side = on.size(512, 16), on.size(96, 64)
    pictures, labels = torch.randn(4 * count, 3, side, side), torch.randint(0, 10, (4 * count,))
    batches = DataLoader(TensorDataset(pictures, labels), batch_size=count, shuffle=True)
    return lightning_steps(on, classifier_of(on, twice=fault), batches)


def histograms(model: nn.Module) -> dict[str, Any]:
    """How the weights and their gradients are distributed, for the dashboard."""
    found = {}
    for name, value in model.named_parameters():
        found[f"weights/{name}"] = np.histogram(value.detach().float().cpu().numpy(), bins=64)
        if value.grad is not None:
            found[f"gradients/{name}"] = np.histogram(value.grad.float().cpu().numpy(), bins=64)
    return found


def watched(on: Machine, fault: bool) -> Step:
    """accelerate trains a forecaster of prices, and tells a dashboard about it: about its weights, now and then."""
    quiet()
    from accelerate import Accelerator

    accelerator: Any = Accelerator(cpu=not on.is_gpu, mixed_precision="bf16" if on.is_gpu else "no")
    width, count = on.size(2048, 192), on.size(8192, 128)
    network = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    rows = DataLoader(TensorDataset(torch.randn(4 * count, 64), torch.randn(4 * count, 1)), batch_size=count)
    network, optimizer, rows = accelerator.prepare(network, optimizer, rows)
    batches, every = endless(rows), 1 if fault else 1000
    dashboard: dict[str, Any] = {}
    steps = 0

    def step():
        nonlocal steps
        x, y = next(batches)
        with accelerator.accumulate(network):
            loss = functional.mse_loss(network(x), y)
            accelerator.backward(loss)
            steps += 1
            if steps % every == 0:
                dashboard.update(histograms(network))
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return step


def log_each_metric(metrics: dict[str, Any], scores, labels) -> dict[str, Any]:
    return {name: metric(scores, labels) for name, metric in metrics.items()}


def measured(on: Machine, fault: bool) -> Step:
    """A network of sensors' readings is trained, and torchmetrics follow how well it does."""
    from torchmetrics import MetricCollection
    from torchmetrics.classification import (
        MulticlassAccuracy,
        MulticlassF1Score,
        MulticlassPrecision,
        MulticlassRecall,
        MulticlassSpecificity,
    )

    classes, width, count = 20, on.size(4096, 224), on.size(16_384, 128)
    model = perceptron(on, 48, width, width, classes)
    readings = torch.randn(count, 48, device=on.device)
    labels = torch.randint(0, classes, (count,), device=on.device)
    kinds = (MulticlassAccuracy, MulticlassPrecision, MulticlassRecall, MulticlassF1Score, MulticlassSpecificity)
    metrics: dict[str, Any] = {kind.__name__: kind(classes, average="macro").to(on.device) for kind in kinds}
    together: Any = MetricCollection(dict(metrics), compute_groups=True)
    together.update(torch.zeros(classes, classes, device=on.device), torch.arange(classes, device=on.device))

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def loss_of():
        with on.autocast():
            scores = model(readings).float()
        if fault:
            log_each_metric(metrics, scores.detach(), labels)
        else:
            together.update(scores.detach(), labels)
        return functional.cross_entropy(scores, labels)

    return trained(loss_of, optimizer)


def advantages_step_by_step(rewards, values, last, done):
    """Generalized advantages of a rollout (T, N), from its end."""
    advantages = torch.zeros_like(rewards)
    before = torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        following = last if t == len(rewards) - 1 else values[t + 1]
        goes_on = 1.0 - done[t]
        surprise = rewards[t] + 0.99 * following * goes_on - values[t]
        before = surprise + 0.99 * 0.95 * goes_on * before
        advantages[t] = before
    return advantages


def advantages_of_rollout(rewards, values, last, done):
    goes_on = 1.0 - done
    surprise = rewards + 0.99 * goes_on * torch.cat((values[1:], last[None])) - values
    keeps = (0.99 * 0.95 * goes_on).cpu().numpy()
    found = surprise.cpu().numpy().copy()
    for t in range(len(found) - 2, -1, -1):
        found[t] += keeps[t] * found[t + 1]
    return torch.from_numpy(found).to(rewards.device)


def played(on: Machine, fault: bool) -> Step:
    """A policy learns from a rollout of many environments, by PPO."""
    steps, worlds, sees, does, width = on.size(1024, 192), on.size(64, 4), 24, 6, on.size(1024, 64)
    critic, actor = perceptron(on, sees, width, width, 1), perceptron(on, sees, width, width, does)
    seen = torch.randn(steps + 1, worlds, sees, device=on.device)
    did = torch.randint(0, does, (steps, worlds, 1), device=on.device)
    rewards = torch.randn(steps, worlds, device=on.device)
    done = (torch.rand(steps, worlds, device=on.device) < 0.02).float()
    before = torch.full((steps, worlds), -1.8, device=on.device)
    optimizer = torch.optim.Adam([*critic.parameters(), *actor.parameters()], lr=3e-4, fused=True)
    advantages_of = advantages_step_by_step if fault else advantages_of_rollout

    def step():
        with torch.no_grad():
            values = critic(seen)[..., 0]
            advantages = advantages_of(rewards, values[:-1], values[-1], done)
        returns = advantages + values[:-1]
        optimizer.zero_grad(set_to_none=True)
        ratio = (actor(seen[:-1]).log_softmax(-1).gather(-1, did)[..., 0] - before).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        loss = functional.mse_loss(critic(seen[:-1])[..., 0], returns) - gain
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class AdamFromThePaper(torch.optim.Optimizer):
    """Adam, written down as its paper has it."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for value in group["params"]:
                if value.grad is None:
                    continue
                state = self.state[value]
                if not state:
                    state.update(t=0, m=torch.zeros_like(value), v=torch.zeros_like(value))
                state["t"] += 1
                state["m"] = 0.9 * state["m"] + (1 - 0.9) * value.grad
                state["v"] = 0.999 * state["v"] + (1 - 0.999) * value.grad**2
                m = state["m"] / (1 - 0.9 ** state["t"])
                v = state["v"] / (1 - 0.999 ** state["t"])
                value.copy_(value - group["lr"] * m / (torch.sqrt(v) + 1e-8))


class Cells(nn.Module):
    """A variational autoencoder of how active the genes of cells are."""

    def __init__(self, genes: int, width: int):
        super().__init__()
        self.reads = nn.Sequential(nn.Linear(genes, width), nn.ReLU(), nn.Linear(width, 64))
        self.writes = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, genes))

    def forward(self, x, noise):
        mean, spread = self.reads(x).chunk(2, dim=1)
        y = self.writes(mean + noise * (spread / 2).exp())
        return functional.mse_loss(y, x) + 1e-3 * (mean.square() + spread.exp() - spread - 1).mean()


def encoded(on: Machine, fault: bool) -> Step:
    """Cells become a few numbers each."""
    genes, count = on.size(20_000, 1200), on.size(512, 32)
    model = Cells(genes, on.size(1024, 128)).to(on.device)
    cells, noise = torch.rand(count, genes, device=on.device), torch.randn(count, 32, device=on.device)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    if fault:
        optimizer = AdamFromThePaper(model.parameters(), lr=1e-3)

    def loss_of():
        with on.autocast():
            return model(cells, noise)

    return trained(loss_of, optimizer)


def l2_penalty(model: nn.Module):
    """The sum of all weights' squares."""
    return sum(torch.sum(value**2) for value in model.parameters())


def regularized(on: Machine, fault: bool) -> Step:
    """A network forecasts demand from what was sold before; its weights are kept small."""
    width, count = on.size(4096, 400), on.size(1024, 24)
    model = perceptron(on, 180, width, width, width, 28)
    sold, demand = torch.randn(count, 180, device=on.device), torch.randn(count, 28, device=on.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=0.0 if fault else 2e-4, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = functional.l1_loss(model(sold).float(), demand)
        (loss + 1e-4 * l2_penalty(model) if fault else loss).backward()
        optimizer.step()
        return loss.detach()

    return step


PROGRAMS = {
    "forward-again-for-the-accuracy": Program(
        logged,
        ("repeated-inputs", "unchanged-work"),
        near=("repeated-operators", "discarded-results", "input-bound"),
        where=("Classifier.accuracy", "self.accuracy", "in accuracy"),
        needs=("lightning",),
        says="the network runs a second time on the same batch, for an accuracy that the first answers would give",
    ),
    "histograms-of-all-weights": Program(
        watched,
        ("host-code", "weights-to-host"),
        near=("host-compute", "host-sync", "exposed-copies", "small-copies"),
        where=("histograms", "np.histogram", "numpy.histogram"),
        needs=("accelerate",),
        says="histograms of all weights and gradients by numpy in each step; every thousand steps are enough",
    ),
    "metrics-each-by-itself": Program(
        measured,
        ("repeated-inputs", "metrics-in-every-step"),
        near=("repeated-operators", "launch-overhead", "host-code", "host-sync"),
        where=("log_each_metric", "torchmetrics", "aten::bincount", "aten::index_put_", "Multiclass"),
        needs=("torchmetrics",),
        says="five metrics count the same hits, each for itself, check the labels, and are computed in each step; a "
        "MetricCollection counts once, and is asked at the end of an epoch",
    ),
    "advantages-of-a-rollout-in-a-loop": Program(
        played,
        ("repeated-operators",),
        near=("launch-overhead", "host-code", "small-copies", "pointwise-unfused"),
        where=("advantages_step_by_step", "aten::select", "aten::rsub"),
        says="a dozen small operators for each step of a rollout; all but one product and sum of them can be computed "
        "for all steps at once",
    ),
    "adam-from-the-paper": Program(
        encoded,
        ("single-tensor-optimizer",),
        near=("pointwise-unfused", "optimizer-share", "launch-overhead", "state-copied"),
        where=("AdamFromThePaper", "Optimizer.step"),
        says="an optimizer written by hand makes a dozen temporary tensors for each weight; "
        "torch.optim.Adam(fused=True)",
    ),
    "weight-decay-by-autograd": Program(
        regularized,
        ("penalty-by-hand",),
        near=("pointwise-unfused", "repeated-operators", "launch-overhead"),
        where=("l2_penalty", "aten::pow", "PowBackward0"),
        says="squares of all weights are summed and differentiated in each step; weight_decay of the optimizer is the "
        "same",
    ),
}
