"""Points, graphs, Gaussian processes of the merged test (library.py, MERGED), each with one fault and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_next import perceptron


def best_of_padded(scores, graphs, sizes, kept):
    """The nodes with the best scores of each graph, best first: from a table with a row for each graph."""
    longest = int(sizes.max())
    begins = sizes.cumsum(0) - sizes
    table = scores.new_full((len(sizes), longest), float("-inf"))
    table[graphs, torch.arange(len(scores), device=scores.device) - begins[graphs]] = scores
    order = table.sort(dim=1, descending=True).indices + begins[:, None]
    return order[torch.arange(longest, device=scores.device) < kept[:, None]]


def best_of_flat(scores, graphs, sizes, kept):
    order = scores.argsort(descending=True)
    order = order[graphs[order].argsort(stable=True)]
    rank = torch.arange(len(scores), device=scores.device) - (sizes.cumsum(0) - sizes)[graphs]
    return order[rank < kept[graphs]]


def pooled(on: Machine, fault: bool) -> Step:
    """Graphs are classified by the better half of their nodes; one graph is far larger than the others."""
    width, count = on.size(512, 32), on.size(1024, 160)
    sizes = torch.full((count,), on.size(48, 8), device=on.device)
    sizes[0] = on.size(16_384, 1024)
    graphs = torch.arange(count, device=on.device).repeat_interleave(sizes)
    kept = (sizes + 1) // 2
    model, judge = perceptron(on, 32, width, width, width), nn.Linear(width, 1).to(on.device)
    head = nn.Linear(width, 10).to(on.device)
    nodes = torch.randn(len(graphs), 32, device=on.device)
    labels = torch.randint(0, 10, (count,), device=on.device)
    best = best_of_padded if fault else best_of_flat

    def loss_of():
        with on.autocast():
            x = model(nodes)
            scores = judge(x)[:, 0].float()
        chosen = best(scores.detach(), graphs, sizes, kept)
        x = x.float().index_select(0, chosen) * scores.index_select(0, chosen).tanh()[:, None]
        sums = x.new_zeros(count, width).index_add(0, graphs[chosen], x)
        return functional.cross_entropy(head(sums / kept[:, None]), labels)

    parameters = [*model.parameters(), *judge.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-3, fused=True))


def covariance(a, b):
    return torch.exp(-torch.cdist(a, b))


class Process:
    """A Gaussian process after its observations; with `keeps`, their covariance is factored once."""

    def __init__(self, places, seen, keeps: bool):
        self.places, self.seen, self.keeps = places, seen, keeps
        self.kept: tuple[torch.Tensor, torch.Tensor] | None = None

    def factored(self):
        if self.kept is not None:
            return self.kept
        matrix = covariance(self.places, self.places)
        matrix.diagonal().add_(0.1)
        factor = torch.linalg.cholesky(matrix)
        found = factor, torch.cholesky_solve(self.seen[:, None], factor)
        if self.keeps:
            self.kept = found
        return found

    def __call__(self, asked):
        """The mean and the variance at each place that is asked for."""
        factor, weights = self.factored()
        between = covariance(self.places, asked)
        rest = torch.linalg.solve_triangular(factor, between, upper=False)
        return (between.mT @ weights)[:, 0], 1.1 - rest.square().sum(0)


def proposed(on: Machine, fault: bool) -> Step:
    """The next experiment is chosen by a Gaussian process, among candidates."""
    process = Process(
        torch.randn(on.size(4096, 512), 16, device=on.device),
        torch.randn(on.size(4096, 512), device=on.device),
        not fault,
    )
    center = torch.randn(on.size(2048, 96), 16, device=on.device)

    @torch.inference_mode()
    def step():
        candidates = center + 0.1 * torch.randn_like(center)
        mean, variance = process(candidates)
        return candidates[(mean + 2 * variance.sqrt()).argmax()]

    return step


def chamfer_twice(a, b):
    """From each point to the nearest of the other cloud, in both directions."""
    return torch.cdist(a, b).amin(2).mean() + torch.cdist(b, a).amin(2).mean()


def chamfer_once(a, b):
    apart = torch.cdist(a, b)
    return apart.amin(2).mean() + apart.amin(1).mean()


def completed(on: Machine, fault: bool) -> Step:
    """An autoencoder of shapes: points are read, and as many are written."""
    width, count, points = on.size(1024, 24), on.size(16, 2), on.size(4096, 512)
    reads, writes = perceptron(on, 3, 128, width), perceptron(on, width, 2 * width, points * 3)
    clouds = torch.randn(count, points, 3, device=on.device)
    chamfer = chamfer_twice if fault else chamfer_once

    def loss_of():
        with on.autocast():
            made = writes(reads(clouds).amax(1)).unflatten(1, (points, 3))
        return chamfer(made.float(), clouds)

    return training(loss_of, torch.optim.AdamW([*reads.parameters(), *writes.parameters()], lr=1e-4, fused=True))


def voxels_by_rows(cells):
    """The different cells, and which one each point is in."""
    return torch.unique(cells, dim=0, return_inverse=True)


def voxels_by_number(cells):
    low = cells.amin(0)
    sizes = cells.amax(0) - low + 1
    steps = sizes.flip(0).cumprod(0).flip(0) // sizes
    number, inverse = torch.unique(((cells - low) * steps).sum(1), return_inverse=True)
    return number[:, None] // steps % sizes + low, inverse


def scanned(on: Machine, fault: bool) -> Step:
    """Points of a laser scan are encoded and averaged in cells of space."""
    count, width = on.size(600_000, 4000), on.size(256, 32)
    points = torch.randn(count, 3, device=on.device) * torch.tensor([20.0, 20.0, 1.0], device=on.device)
    scan = torch.randint(0, 4, (count, 1), device=on.device)
    encodes, judges = (perceptron(on, *widths).to(on.half) for widths in ((3, width // 4, width), (width, width, 4)))
    voxels = voxels_by_rows if fault else voxels_by_number

    @torch.inference_mode()
    def step():
        cells, inverse = voxels(torch.cat((scan, (points / 0.4).floor().long()), dim=1))
        features = encodes(points.to(on.half)).float()
        sums = features.new_zeros(len(cells), width).index_add_(0, inverse, features)
        return judges((sums / inverse.bincount(minlength=len(cells))[:, None]).to(on.half)).argmax(1)

    return step


PROGRAMS = {
    "scores-padded-to-the-largest-graph": Program(
        pooled,
        ("padding",),
        near=("dominant-operator", "full-sort", "memory-spike", "host-sync"),
        where=("aten::sort",),
        says="scores of nodes are sorted in a table with a row for each graph, as long as the largest one: nearly all "
        "is padding; sort all nodes, and stably by graph",
    ),
    "process-factored-for-every-request": Program(
        proposed,
        ("unchanged-work", "constant-work"),
        near=("matrix-decomposition", "dominant-operator"),
        where=("cholesky", "potrf"),
        says="the covariance of the observations, which do not change, is computed and factored for each request; keep "
        "its Cholesky factor",
    ),
    "distances-in-both-directions": Program(
        completed,
        ("mirrored-work", "repeated-inputs"),
        near=("dominant-operator", "pointwise-unfused", "memory-spike", "fp32-matmul"),
        where=("cdist", "euclidean_dist"),
        says="the chamfer distance computes the distances of all pairs from a to b, and again from b to a; take both "
        "minima of one matrix",
    ),
    "voxels-by-unique-rows": Program(
        scanned,
        ("unique-rows",),
        near=("dominant-operator", "host-sync", "full-sort"),
        where=("unique_dim",),
        says="unique(dim=0) sorts rows by comparing them; number the cells, and take unique of the numbers",
    ),
}
