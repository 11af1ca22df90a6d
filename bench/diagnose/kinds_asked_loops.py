"""Loops of the asked test (library.py, ASKED), around other models, each with one planted fault and mended."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer, stack, to_device
from kinds_next import perceptron


class Neighbours(nn.Module):
    """A graph convolution: a product with the matrix of all pairs of nodes, or sums over the edges that there are."""

    def __init__(self, before: int, after: int, pairs: torch.Tensor | None):
        super().__init__()
        self.linear, self.pairs = nn.Linear(before, after), pairs

    def forward(self, x, edges, weights):
        x = self.linear(x)
        if self.pairs is not None:
            return self.pairs @ x
        sent = x.index_select(0, edges[0]) * weights[:, None]
        return torch.zeros_like(x).index_add_(0, edges[1], sent)


def papers(on: Machine, fault: bool) -> Step:
    """Papers that cite each other are sorted into classes."""
    nodes, degree, width = on.size(16_384, 1024), on.size(32, 6), on.size(256, 24)
    edges = torch.randint(0, nodes, (2, nodes * degree), device=on.device)
    weights = 1 / torch.bincount(edges[1], minlength=nodes).clamp(min=1)[edges[1]].float()
    pairs = None
    if fault:
        pairs = torch.zeros(nodes, nodes, device=on.device).index_put_((edges[1], edges[0]), weights, accumulate=True)
    layers = nn.ModuleList(Neighbours(width, width, pairs) for _ in range(3)).to(on.device)
    head = perceptron(on, width, 4 * width, 40)
    seen = torch.randn(nodes, width, device=on.device)
    labels = torch.randint(0, 40, (nodes,), device=on.device)

    def loss_of():
        x = seen
        for layer in layers:
            x = functional.relu(layer(x, edges, weights))
        return functional.cross_entropy(head(x), labels)

    return training(loss_of, torch.optim.AdamW([*layers.parameters(), *head.parameters()], lr=1e-3, fused=True))


def hits_of_sorted(scores, wanted, best: int):
    """Whether the item that somebody wanted is among the best, and its rank there."""
    found = scores.argsort(dim=1, descending=True)[:, :best] == wanted[:, None]
    return found.any(1), found.float().argmax(1)


def hits_of_best(scores, wanted, best: int):
    found = scores.topk(best, dim=1).indices == wanted[:, None]
    return found.any(1), found.float().argmax(1)


def recommended(on: Machine, fault: bool) -> Step:
    """A recommender is evaluated: all items are sorted for each user to see twenty, or the best twenty are found."""
    users, items, width = on.size(1024, 32), on.size(50_000, 4000), on.size(512, 32)
    reader = Transformer(width, on.size(8, 2), on.size(4, 1)).to(on.device, on.half).eval()
    things = torch.randn(items, width, device=on.device, dtype=on.half)
    known = torch.randint(0, items, (users, on.size(64, 8)), device=on.device)
    wanted = torch.randint(0, items, (users,), device=on.device)
    total = torch.zeros(2, device=on.device)
    hits = hits_of_sorted if fault else hits_of_best

    @torch.inference_mode()
    def step():
        scores = (reader(things[known])[:, -1] @ things.T).float().scatter_(1, known, float("-inf"))
        found, rank = hits(scores, wanted, 20)
        total.add_(torch.stack((found.float().mean(), (found / (rank + 2.0).log2()).mean())))

    return step


class Slow:
    """What follows a network slowly: through copies of the network and of its dictionary of weights, or in place."""

    def __init__(self, network: nn.Module, copies: bool):
        self.network, self.copies = network, copies
        self.target: Any = copy.deepcopy(network).requires_grad_(False)
        self.weights: list[torch.Tensor] = list(self.target.parameters())
        self.live = [each.detach() for each in network.parameters()]

    def follow(self, rate: float) -> None:
        if self.copies:
            now, old = copy.deepcopy(self.network).state_dict(), self.target.state_dict()
            self.target.load_state_dict({key: rate * now[key] + (1 - rate) * old[key] for key in old})
        else:
            torch._foreach_lerp_(self.weights, self.live, rate)


def agent(on: Machine, fault: bool) -> Step:
    """An actor and two critics learn from what was seen; targets follow all three in every step."""
    sees, does, width, count = on.size(64, 12), on.size(8, 3), on.size(512, 64), on.size(2048, 16)
    actor = perceptron(on, sees, *[width] * 5, does)
    critics = [perceptron(on, sees + does, *[width] * 5, 1) for _ in range(2)]
    slow = [Slow(each, copies=fault) for each in (actor, *critics)]
    seen, after = torch.randn(2, count, sees, device=on.device).unbind()
    done, reward = torch.randn(count, does, device=on.device), torch.randn(count, 1, device=on.device)
    both = [*critics[0].parameters(), *critics[1].parameters()]
    moves_actor = torch.optim.Adam(actor.parameters(), lr=1e-4, fused=True)
    moves_critics = torch.optim.Adam(both, lr=1e-4, fused=True)

    def step():
        with torch.no_grad():
            then = torch.cat((after, slow[0].target(after).tanh()), dim=1)
            wanted = reward + 0.99 * torch.min(slow[1].target(then), slow[2].target(then))
        now = torch.cat((seen, done), dim=1)
        moves_critics.zero_grad(set_to_none=True)
        sum(functional.mse_loss(each(now), wanted) for each in critics).backward()
        moves_critics.step()
        value = critics[0](torch.cat((seen, actor(seen).tanh()), dim=1))
        moves_actor.zero_grad(set_to_none=True)
        (-value.mean()).backward(inputs=list(actor.parameters()))
        moves_actor.step()
        for each in slow:
            each.follow(0.005)

    return step


def area_of_all(scores, truth):
    """The area under the curve, from every score."""
    hits = truth[scores.argsort(descending=True)].cumsum(0)
    misses = torch.arange(1, len(scores) + 1, device=scores.device) - hits
    return torch.trapezoid(hits / hits[-1], misses / misses[-1])


class Exact:
    """Keeps every score and computes the area from all of them whenever it is called; an epoch ends at some time."""

    def __init__(self, epoch: int):
        self.epoch = epoch
        self.scores: list[torch.Tensor] = []
        self.truth: list[torch.Tensor] = []

    def __call__(self, scores, truth):
        if len(self.scores) == self.epoch:
            self.scores, self.truth = [], []
        self.scores.append(scores)
        self.truth.append(truth)
        return area_of_all(torch.cat(self.scores), torch.cat(self.truth))


class Binned:
    """Counts scores of both kinds by thresholds; the area follows from the counts."""

    def __init__(self, on: Machine, bins: int = 1024):
        self.bins = bins
        self.counts = torch.zeros(2 * bins, device=on.device)

    def __call__(self, scores, truth):
        places = scores.clamp(max=1 - 1e-6) * self.bins + self.bins * truth
        self.counts.add_(torch.histc(places, 2 * self.bins, 0, 2 * self.bins))
        misses, hits = self.counts.view(2, -1).flip(1).cumsum(1)
        return torch.trapezoid(hits / hits[-1], misses / misses[-1])


def defects(on: Machine, fault: bool) -> Step:
    """Defects are found pixel by pixel; how well so far is shown after every batch."""
    count, side, width = on.size(32, 2), on.size(128, 24), on.size(128, 16)
    model = to_device(nn.Sequential(*stack(3, width, width, width, width), nn.Conv2d(width, 1, 1)), on)
    images = torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)
    truth = (torch.rand(count, 1, side, side, device=on.device) < 0.1).float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    metric = Exact(1000) if fault else Binned(on)
    shown = torch.zeros((), device=on.device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            scores = model(images).float()
        functional.binary_cross_entropy_with_logits(scores, truth).backward()
        optimizer.step()
        with torch.no_grad():
            shown.copy_(metric(scores.sigmoid().flatten(), truth.flatten()))

    return step


class Clips(Dataset):
    """Short recordings in one compressed archive, which is opened and unpacked for every clip, or once."""

    def __init__(self, count: int, length: int, opens_for_each: bool):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "clips.npz"
        clips = np.random.default_rng(0).integers(-3000, 3000, (count, length), dtype=np.int16)
        np.savez_compressed(self.path, clips=clips, labels=np.arange(count) % 10)
        self.count = count
        self.unpacked = None if opens_for_each else self.unpack()

    def unpack(self) -> tuple[np.ndarray, np.ndarray]:
        with np.load(self.path) as archive:
            return archive["clips"], archive["labels"]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, which: int):
        clips, labels = self.unpacked or self.unpack()
        return torch.from_numpy(clips[which].astype(np.float32) / 32768), int(labels[which])


def sounds(on: Machine, fault: bool) -> Step:
    """Sounds are sorted into classes; they come from a loader without workers."""
    length, width, size = on.size(3000, 1000), on.size(1024, 16), on.size(16, 8)
    loader = DataLoader(Clips(32, length, opens_for_each=fault), size, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(1, width, 16, 4),
        nn.ReLU(),
        nn.Conv1d(width, width, 8, 2),
        nn.ReLU(),
        nn.Conv1d(width, width, 8, 2),
        nn.ReLU(),
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
        clips, labels = (each.to(on.device) for each in found)
        with on.autocast():
            return functional.cross_entropy(model(clips[:, None]), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "adjacency-as-a-dense-matrix": Program(
        papers,
        ("dense-zeros", "dominant-operator"),
        near=("fp32-matmul", "tensor-cores-unused", "memory-spike"),
        says="a graph network whose neighbours are summed by a product with an adjacency matrix that is zero almost "
        "everywhere; index_add over the edges, or a sparse matrix",
    ),
    "recommender-sorts-all-items": Program(
        recommended,
        ("full-sort", "dominant-operator"),
        near=("dtype-ping-pong",),
        says="evaluation of a recommender: argsort of all items of each user, of which twenty are looked at; topk",
    ),
    "agent-targets-through-copies": Program(
        agent,
        ("copied-modules", "whole-copies", "launch-overhead", "repeated-operators"),
        near=("host-code", "pointwise-unfused", "allocator-thrash", "constant-copies"),
        says="soft updates of target networks: each step copies the networks, builds new dictionaries of weights and "
        "loads them, tensor by tensor; _foreach_lerp_ in place",
    ),
    "metric-over-everything-so-far": Program(
        defects,
        ("growing-steps", "growing-input", "full-sort"),
        near=("memory-leak", "dominant-operator", "allocator-thrash", "whole-copies"),
        says="training that gets slower with every step: a metric for the progress bar sorts all scores since the "
        "epoch began; count by thresholds, or compute it at the end",
    ),
    "archive-unpacked-for-every-sample": Program(
        sounds,
        ("input-bound", "host-code"),
        near=("host-compute", "pageable-copies", "small-batch"),
        says="low utilization with a small dataset: its archive is opened and unpacked again for every sample, in the "
        "process that trains; unpack it once, or store samples apart and use workers",
    ),
}
