"""Graphs, views, boxes and pairs in the shipped test (library.py, SHIPPED), each with one planted fault and mended."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step
from kinds_next import perceptron
from kinds_shipped_models import convolved, trained


def citations(on: Machine) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Papers' words, who cites whom (both ways), and the papers' fields."""
    papers, cited = on.size(100_000, 2500), on.size(1_000_000, 10_000)
    pairs = torch.randint(0, papers, (2, cited), device=on.device)
    edges = torch.cat((pairs, pairs.flip(0)), dim=1)
    return torch.randn(papers, on.size(512, 32), device=on.device), edges, torch.arange(papers, device=on.device) % 7


class Citations(nn.Module):
    """Two layers of a graph network."""

    def __init__(self, words: int, width: int, cached: bool):
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.first, self.second = GCNConv(words, width, cached=cached), GCNConv(width, 7, cached=cached)

    def classify_papers(self, words, edges):
        return self.second(functional.relu(self.first(words, edges)), edges)

    def forward(self, words, edges):
        return self.classify_papers(words, edges)


def cited(on: Machine, fault: bool) -> Step:
    """Fields of papers are learned from one graph of citations, which stays as it is."""
    words, edges, fields = citations(on)
    model = Citations(words.shape[1], on.size(256, 16), cached=not fault).to(on.device)

    def loss_of():
        return functional.cross_entropy(model(words, edges), fields)

    return trained(loss_of, torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True))


def contrastive_loss(first, second, temperature: float):
    """Two views of a sample should be nearer to each other than to all other samples."""
    views = torch.cat((first, second))
    alike = functional.cosine_similarity(views[:, None], views[None], dim=-1) / temperature
    alike = alike.masked_fill(torch.eye(len(views), dtype=torch.bool, device=views.device), float("-inf"))
    other = torch.arange(len(views), device=views.device).roll(len(first))
    return functional.cross_entropy(alike, other)


def contrastive_loss_by_product(first, second, temperature: float):
    views = functional.normalize(torch.cat((first, second)), dim=-1)
    alike = (views @ views.T) / temperature
    alike = alike.masked_fill(torch.eye(len(views), dtype=torch.bool, device=views.device), float("-inf"))
    other = torch.arange(len(views), device=views.device).roll(len(first))
    return functional.cross_entropy(alike, other)


def contrasted(on: Machine, fault: bool) -> Step:
    """Features of sensors' windows are learned without labels."""
    width, count = on.size(2048, 320), on.size(1024, 32)
    model = perceptron(on, 96, width, width, on.size(128, 32))
    first, second = torch.randn(2, count, 96, device=on.device)
    loss_by = contrastive_loss if fault else contrastive_loss_by_product

    def loss_of():
        with on.autocast():
            one, other = model(first), model(second)
        return loss_by(one.float(), other.float(), 0.2)

    return trained(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


def rays_of_image(side: int, focal: float, pose):
    """Where the rays of all pixels begin, and where they go."""
    places = torch.arange(side, device=pose.device, dtype=torch.float32)
    down, right = torch.meshgrid(places, places, indexing="ij")
    ways = torch.stack(((right - side / 2) / focal, -(down - side / 2) / focal, -torch.ones_like(right)), dim=-1)
    ways = functional.normalize((ways[..., None, :] * pose[:3, :3]).sum(-1), dim=-1)
    return pose[:3, 3].expand(ways.shape), ways


def choose_rays(side: int, focal: float, pose, chosen):
    begins, ways = rays_of_image(side, focal, pose)
    down, right = chosen // side, chosen % side
    return begins[down, right], ways[down, right]


def rays_of_chosen(side: int, focal: float, pose, chosen):
    right, down = (chosen % side).float(), (chosen // side).float()
    ways = torch.stack(((right - side / 2) / focal, -(down - side / 2) / focal, -torch.ones_like(right)), dim=-1)
    ways = functional.normalize(ways @ pose[:3, :3].T, dim=-1)
    return pose[:3, 3].expand(ways.shape), ways


def seen_from(on: Machine, fault: bool) -> Step:
    """A radiance field is learned from some pixels of a photo in each step."""
    side, count, samples, width = on.size(800, 200), on.size(4096, 64), on.size(64, 12), on.size(256, 64)
    field = perceptron(on, 3 + 3 * 12, width, width, width, 4)
    pose = torch.eye(4, device=on.device)
    pose[:3, 3] = torch.tensor([0.1, 0.2, 3.0], device=on.device)
    photo = torch.rand(side * side, 3, device=on.device)
    depths = torch.linspace(2, 6, samples, device=on.device)
    powers = 2.0 ** torch.arange(6, device=on.device)
    rays = choose_rays if fault else rays_of_chosen

    def loss_of():
        chosen = torch.randint(0, side * side, (count,), device=on.device)
        begins, ways = rays(side, 500.0, pose, chosen)
        places = begins[:, None] + ways[:, None] * depths[:, None]
        waves = (places[..., None] * powers).flatten(-2)
        with on.autocast():
            colour, density = field(torch.cat((places, waves.sin(), waves.cos()), dim=-1)).float().split((3, 1), dim=-1)
        let = torch.exp(-functional.relu(density[..., 0]) * (4 / samples))
        reached = torch.cat((torch.ones_like(let[:, :1]), let[:, :-1]), dim=1).cumprod(1)
        pixels = ((1 - let) * reached)[..., None].mul(colour.sigmoid()).sum(1)
        return functional.mse_loss(pixels, photo[chosen])

    return trained(loss_of, torch.optim.Adam(field.parameters(), lr=5e-4, fused=True))


def count_hits(found: torch.Tensor, truth: torch.Tensor) -> int:
    """How many of the found boxes (best first) are at an object that no better one has found."""
    from torchvision.ops import box_iou

    hits, taken = 0, set()
    for box in found:
        best, place = 0.5, -1
        for i, real in enumerate(truth):
            overlap = box_iou(box[None], real[None]).item()
            if overlap > best and i not in taken:
                best, place = overlap, i
        if place >= 0:
            taken.add(place)
            hits += 1
    return hits


def count_hits_of_matrix(found: torch.Tensor, truth: torch.Tensor) -> int:
    from torchvision.ops import box_iou

    hits, taken = 0, set()
    for row in box_iou(found, truth).tolist():
        left = [(overlap, i) for i, overlap in enumerate(row) if overlap > 0.5 and i not in taken]
        if left:
            taken.add(max(left)[1])
            hits += 1
    return hits


def detected(on: Machine, fault: bool) -> Step:
    """A detector is evaluated: how many of its boxes are right."""
    count, side, most = on.size(64, 2), on.size(512, 192), on.size(100, 12)
    model: Any = convolved(on, 4 * most).eval()
    images = torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)
    low = torch.rand(count, on.size(20, 6), 2, device=on.device) * 60
    truth = torch.cat((low, low + 30), dim=-1)
    near = truth.repeat(1, -(-most // truth.shape[1]), 1)[:, :most]
    count_by = count_hits if fault else count_hits_of_matrix

    @torch.inference_mode()
    def step():
        boxes = near + model(images).view(count, most, 4)
        return sum(count_by(found, real) for found, real in zip(boxes, truth, strict=True)) / (count * most)

    return step


PROGRAMS = {
    "graph-normalized-in-every-layer": Program(
        cited,
        ("constant-work", "unchanged-work"),
        near=("repeated-inputs", "contended-scatter", "index-backward"),
        where=("classify_papers", "gcn_norm", "add_remaining_self_loops", "GCNConv", "aten::pow_"),
        needs=("torch_geometric",),
        says="the graph is the same in each step, and each layer adds its loops and computes its degrees again; "
        "GCNConv(cached=True)",
    ),
    "similarities-by-broadcast": Program(
        contrasted,
        ("broadcast-product",),
        near=("pointwise-unfused", "broadcast-operand", "dominant-operator"),
        where=("contrastive_loss", "aten::cosine_similarity", "cosine_similarity"),
        says="cosine_similarity of all pairs broadcasts both sides over all channels; normalize, and one product",
    ),
    "rays-of-the-whole-image": Program(
        seen_from,
        ("discarded-results", "constant-work"),
        near=("pointwise-unfused", "dominant-operator", "unchanged-work"),
        where=("choose_rays", "rays_of_image", "aten::meshgrid"),
        says="rays of all pixels of a photo are computed in each step, and a few are chosen; choose pixels first",
    ),
    "boxes-compared-in-pairs": Program(
        detected,
        ("repeated-operators", "host-sync", "host-code"),
        near=("launch-overhead", "small-copies"),
        where=("count_hits", "box_iou", "aten::item", "_local_scalar_dense"),
        needs=("torchvision",),
        says="box_iou for each pair of boxes, and item() of each answer; one box_iou of all",
    ),
}
