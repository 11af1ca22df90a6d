"""More programs of the kinds of kinds_common_compute.py, scored and never tuned with (library.py, COMMON_KEPT).

Written before any rule for these kinds, and not looked at while rules are written.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import pictures
from kinds_next import perceptron


def paired(on: Machine, fault: bool) -> Step:
    """How well each question fits its answer: all questions with all answers, of which the diagonal is used; or each
    with its own."""
    count, width = on.size(16_384, 512), on.size(1024, 64)
    towers = nn.ModuleList(perceptron(on, width, width, width) for _ in range(2))
    questions, answers = torch.randn(2, count, width, device=on.device).unbind()
    wanted = torch.randn(count, device=on.device)

    def loss_of():
        with on.autocast():
            a, b = towers[0](questions), towers[1](answers)
            fits = (a @ b.T).diagonal() if fault else torch.linalg.vecdot(a, b)
        return functional.mse_loss(fits.float() / width, wanted)

    return training(loss_of, torch.optim.AdamW(towers.parameters(), lr=1e-4, fused=True))


class Quantized(nn.Module):
    """Weights of 8 bits. `each_call`: they become numbers in every call, or once (where memory allows)."""

    def __init__(self, before: int, after: int, dtype: torch.dtype, each_call: bool):
        super().__init__()
        self.register_buffer("small", torch.randint(-127, 128, (after, before), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(after, 1, dtype=dtype) / before)
        self.register_buffer("large", None if each_call else self.weight())

    def weight(self):
        return self.small.to(self.scale.dtype) * self.scale

    def forward(self, x):
        return functional.linear(x, self.weight() if self.large is None else self.large)


def written_with_small_weights(on: Machine, fault: bool) -> Step:
    """Eight words are written, one after the other, by layers of quantized weights."""
    width = on.size(4096, 256)
    layers = [Quantized(a, b, on.half, fault) for _ in range(4) for a, b in ((width, 2 * width), (2 * width, width))]
    model = nn.Sequential(*[each for layer in layers for each in (layer, nn.ReLU())]).to(on.device)
    begin = torch.randn(on.size(32, 4), width, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        state = begin
        for _ in range(on.size(8, 3)):
            state = begin + model(state)
        return state

    return step


class Scorer(nn.Module):
    """Scores documents for a query. `joins`: the query is repeated beside each document before the first layer."""

    def __init__(self, width: int, hidden: int, joins: bool):
        super().__init__()
        self.first, self.second, self.joins = nn.Linear(2 * width, hidden), nn.Linear(hidden, 1), joins

    def forward(self, queries, documents):
        if self.joins:
            repeated = queries[:, None].expand(-1, documents.shape[1], -1)
            x = self.first(torch.cat((repeated, documents), dim=-1))
        else:
            left, right = self.first.weight.chunk(2, dim=1)
            x = functional.linear(queries, left, self.first.bias)[:, None] + functional.linear(documents, right)
        return self.second(torch.relu(x)).squeeze(-1)


def ranked(on: Machine, fault: bool) -> Step:
    width, count, found = on.size(1024, 256), on.size(512, 24), on.size(128, 32)
    model = Scorer(width, on.size(1024, 192), fault).to(on.device)
    queries = torch.randn(count, width, device=on.device)
    documents = torch.randn(count, found, width, device=on.device)
    best = torch.randint(0, found, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(queries, documents), best)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Scaled(nn.Module):
    """A layer and a learned scale for each channel. `matrix`: as a product with a diagonal matrix."""

    def __init__(self, width: int, matrix: bool):
        super().__init__()
        self.layer, self.scale, self.matrix = nn.Linear(width, width), nn.Parameter(torch.ones(width)), matrix

    def forward(self, x):
        y = torch.relu(self.layer(x))
        return x + (y @ torch.diag(self.scale) if self.matrix else y * self.scale)


def residual(on: Machine, fault: bool) -> Step:
    width = on.size(4096, 192)
    model = nn.Sequential(*[Scaled(width, fault) for _ in range(4)]).to(on.device, on.half)
    x = torch.randn(on.size(8192, 96), width, device=on.device, dtype=on.half)
    wanted = torch.randn_like(x)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return training(lambda: functional.mse_loss(model(x), wanted), optimizer)


def cumulated(on: Machine, fault: bool) -> Step:
    """Running sums along a sequence: a product with a triangle of ones, or cumsum."""
    count, length, width = on.size(32, 4), on.size(4096, 1024), on.size(256, 32)
    layer = nn.Linear(width, width).to(on.device)
    x = torch.randn(count, length, width, device=on.device)

    @torch.inference_mode()
    def step():
        y = torch.relu(layer(x))
        if fault:
            return torch.ones(length, length, device=on.device).tril() @ y
        return y.cumsum(1)

    return step


def pooled_by_hand(weights, entries):
    return (weights[..., None] * entries[:, None]).sum(2)


def slots(on: Machine, fault: bool) -> Step:
    """Each slot is a weighted sum of all entries: products are written out and summed, or a product of matrices."""
    count, few, many, width = on.size(64, 8), on.size(64, 32), on.size(1024, 128), on.size(128, 48)
    score, value = nn.Linear(width, few).to(on.device, on.half), nn.Linear(width, width).to(on.device, on.half)
    x = torch.randn(count, many, width, device=on.device, dtype=on.half)
    wanted = torch.randn(count, few, width, device=on.device, dtype=on.half)
    pool = pooled_by_hand if fault else torch.bmm

    def loss_of():
        return functional.mse_loss(pool(score(x).mT.softmax(-1), value(x)), wanted)

    parameters = [*score.parameters(), *value.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def moving_means(series, size: int):
    return series.unfold(-1, size, 1).mean(-1)


def moving_means_by_sums(series, size: int):
    sums = functional.pad(series.cumsum(-1), (1, 0))
    return (sums[..., size:] - sums[..., :-size]) / size


def trends(on: Machine, fault: bool) -> Step:
    """Moving averages of a quarter as a feature of a forecast: of each window by itself, or from running sums."""
    count, length, size = on.size(512, 24), on.size(65_536, 8192), on.size(256, 128)
    series = torch.randn(count, length, device=on.device)
    model = nn.Conv1d(1, 8, 9).to(on.device)
    means = moving_means if fault else moving_means_by_sums

    @torch.inference_mode()
    def step():
        smooth = means(series, size)
        return model((series[:, size - 1 :] - smooth)[:, None]).amax(-1)

    return step


def songs(on: Machine, fault: bool) -> Step:
    """Vectors of songs in playlists are taken from a learned table by brackets, or by index_select."""
    rows, width, count, length = on.size(50_000, 3000), on.size(128, 48), on.size(4096, 256), on.size(256, 96)
    table = nn.Parameter(torch.randn(rows, width, device=on.device) * 0.02)
    model = perceptron(on, width, 4 * width, width)
    ids = torch.randint(0, rows, (count, length), device=on.device)
    wanted = torch.randn(count, width, device=on.device)

    def loss_of():
        found = table[ids] if fault else table.index_select(0, ids.flatten()).unflatten(0, ids.shape)
        return functional.mse_loss(model(found.mean(1)), wanted)

    return training(loss_of, torch.optim.AdamW([table, *model.parameters()], lr=1e-3, fused=True))


def fitted(on: Machine, fault: bool) -> Step:
    """A linear fit on features of each task: by the pseudo-inverse, or by solving the normal equations."""
    count, rows, width = on.size(16, 4), on.size(1024, 256), on.size(64, 48)
    network = perceptron(on, 16, on.size(256, 48), width).eval()
    x = torch.randn(count, rows, 16, device=on.device)
    observed = torch.randn(count, rows, 4, device=on.device)
    little = 1e-4 * torch.eye(width, device=on.device)

    @torch.no_grad()
    def step():
        features = network(x)
        if fault:
            return torch.linalg.pinv(features) @ observed
        return torch.linalg.solve(features.mT @ features + little, features.mT @ observed)

    return step


class Thin(nn.Module):
    """A layer of low rank. `joins`: its two thin matrices are multiplied first."""

    def __init__(self, width: int, rank: int, joins: bool):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, rank) / rank**0.5)
        self.down = nn.Parameter(torch.randn(rank, width) / width**0.5)
        self.joins = joins

    def forward(self, x):
        if self.joins:
            return functional.linear(x, self.up @ self.down)
        return functional.linear(functional.linear(x, self.down), self.up)


def compressed(on: Machine, fault: bool) -> Step:
    width, rank = on.size(8192, 512), on.size(64, 16)
    model = nn.Sequential(*[each for _ in range(4) for each in (Thin(width, rank, fault), nn.ReLU())])
    model = model.to(on.device, on.half)
    x = torch.randn(on.size(1024, 48), width, device=on.device, dtype=on.half)
    wanted = torch.randn_like(x)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return training(lambda: functional.mse_loss(model(x), wanted), optimizer)


class Frames(nn.Module):
    """3 by 3 convolutions of each frame of a video. `volumes`: as a convolution of volumes, one frame deep."""

    def __init__(self, before: int, after: int, volumes: bool):
        super().__init__()
        self.weight, self.volumes = nn.Parameter(torch.randn(after, before, 3, 3) / (9 * before) ** 0.5), volumes

    def forward(self, frames):
        if not self.volumes:
            return functional.conv2d(frames, self.weight, padding=1)
        volume = frames.unflatten(0, (-1, 16)).transpose(1, 2)
        found = functional.conv3d(volume, self.weight[:, :, None], padding=(0, 1, 1))
        return found.transpose(1, 2).flatten(0, 1)


def video(on: Machine, fault: bool) -> Step:
    width, count = on.size(64, 8), on.size(64, 16)
    layers = [each for before in (3, width, width) for each in (Frames(before, width, fault), nn.ReLU())]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 50)).to(on.device)
    frames = pictures(on, count, on.size(112, 16))
    labels = torch.randint(0, 50, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(frames), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


def projected(on: Machine, fault: bool) -> Step:
    """Each sample's vector times one matrix: the matrix is repeated for bmm, or given to linear."""
    count, width = on.size(2048, 192), on.size(512, 128)
    weight = torch.randn(width, width, device=on.device, dtype=on.half) / width**0.5
    model = perceptron(on, width, 8 * width, width).to(on.half).eval()
    x = torch.randn(count, width, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        y = model(x)
        for _ in range(4):
            if fault:
                y = torch.bmm(y[:, None], weight[None].repeat(count, 1, 1)).squeeze(1).tanh()
            else:
                y = (y @ weight).tanh()
        return y

    return step


def whitened_by_svd(x):
    u, _, vh = torch.linalg.svd(x, full_matrices=False)
    return u @ vh * len(x) ** 0.5


def whitened_by_eigh(x):
    found, vectors = torch.linalg.eigh(x.T @ x / len(x))
    return x @ (vectors * found.clamp_min(1e-6).rsqrt()) @ vectors.T


def decorrelated(on: Machine, fault: bool) -> Step:
    """Features of a batch are made uncorrelated: by a decomposition of the batch, or of its small covariance."""
    count, width = on.size(8192, 1024), on.size(128, 48)
    network = perceptron(on, width, on.size(1024, 96), width).eval()
    x = torch.randn(count, width, device=on.device)
    whiten = whitened_by_svd if fault else whitened_by_eigh

    @torch.no_grad()
    def step():
        return whiten(network(x))

    return step


class Edges(nn.Module):
    """A network of the node that each edge begins at. `of_edges`: it runs for each edge, and not for each node."""

    def __init__(self, width: int, of_edges: bool):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.of_edges = of_edges

    def forward(self, x, sources, targets):
        of_nodes = x if self.of_edges else self.network(x)
        rows = of_nodes.index_select(0, sources)
        sent = self.network(rows) if self.of_edges else rows
        return torch.zeros_like(x).index_add_(0, targets, sent)


def friends(on: Machine, fault: bool) -> Step:
    nodes, edges, width = on.size(16_384, 512), on.size(524_288, 8192), on.size(256, 32)
    model = Edges(width, fault).to(on.device, on.half)
    x = torch.randn(nodes, width, device=on.device, dtype=on.half)
    sources, targets = torch.randint(0, nodes, (2, edges), device=on.device).unbind()
    wanted = torch.randn_like(x)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    return training(lambda: functional.mse_loss(model(x, sources, targets), wanted), optimizer)


def calibrated(on: Machine, fault: bool) -> Step:
    """How much confidence falls into each of 64 bins: scatter_add, or bincount."""
    count = on.size(16_777_216, 65_536)
    scores = torch.randn(count // 16, 16, device=on.device)

    @torch.inference_mode()
    def step():
        sure = scores.sigmoid().flatten()
        bins = (sure * 64).long().clamp_max(63)
        if fault:
            return torch.zeros(64, device=on.device).scatter_add_(0, bins, sure)
        return torch.bincount(bins, sure, 64)

    return step


PROGRAMS: dict[str, Program] = {
    "diagonal-of-all-pairs": Program(
        paired,
        ("discarded-results",),
        near=("dominant-operator", "memory-spike"),
        says="all pairs are multiplied and the diagonal is used; vecdot multiplies each with its own",
    ),
    "weights-dequantized-in-every-call": Program(
        written_with_small_weights,
        ("unchanged-work", "repeated-inputs", "constant-work"),
        near=("dominant-operator", "dtype-ping-pong"),
        says="the same weights become bf16 in every call; once where memory allows, or a kernel that reads int8",
    ),
    "query-repeated-beside-documents": Program(
        ranked,
        ("repeated-rows",),
        near=("dominant-operator", "whole-copies", "layout-copies"),
        says="the query's half of the first layer is the same for all its documents; split the layer",
    ),
    "scale-as-diagonal-matrix": Program(
        residual,
        ("structured-product",),
        near=("dominant-operator",),
        says="a product with a diagonal matrix; multiply with its diagonal",
    ),
    "running-sum-as-triangular-product": Program(
        cumulated,
        ("structured-product",),
        near=("dominant-operator", "constant-work", "unchanged-work"),
        says="a product with a triangle of ones; cumsum",
    ),
    "weighted-sum-by-broadcast": Program(
        slots,
        ("broadcast-product", "dominant-operator"),
        near=("memory-spike",),
        says="weights times entries are written out and summed; bmm",
    ),
    "moving-mean-by-windows": Program(
        trends,
        ("overlapping-windows",),
        near=("dominant-operator",),
        says="each window is read by itself, though neighbours share all but one place; running sums",
    ),
    "songs-by-brackets": Program(
        songs,
        ("index-backward",),
        near=("dominant-operator", "dense-gradients"),
        says="backward of table[ids] sorts the ids and adds one after the other; index_select or an embedding",
    ),
    "fit-by-pseudo-inverse": Program(
        fitted,
        ("matrix-decomposition",),
        near=("dominant-operator", "host-sync", "launch-overhead"),
        says="the pseudo-inverse takes a singular value decomposition; solve the normal equations, or lstsq",
    ),
    "thin-matrices-joined-first": Program(
        compressed,
        ("contraction-order",),
        near=("dominant-operator",),
        says="up @ down is as large as the layer that it replaces; multiply the input with one after the other",
    ),
    "frames-as-volume-convolution": Program(
        video,
        ("slow-convolution", "dominant-operator"),
        near=("layout-copies",),
        says="a convolution of volumes that are one frame deep; conv2d of the frames",
    ),
    "matrix-repeated-for-bmm": Program(
        projected,
        ("broadcast-operand", "repeated-rows"),
        near=("dominant-operator", "whole-copies"),
        says="one matrix is copied for each sample and multiplied with one vector at a time; linear",
    ),
    "whitening-by-svd-of-batch": Program(
        decorrelated,
        ("matrix-decomposition", "dominant-operator"),
        near=("host-sync", "launch-overhead"),
        says="a singular value decomposition of the whole batch; eigh of its small covariance",
    ),
    "network-of-edges-not-nodes": Program(
        friends,
        ("repeated-rows",),
        near=("dominant-operator", "repeated-inputs"),
        says="a network of the node at the edge's begin runs for each edge; run it for nodes, then take their rows",
    ),
    "bins-by-scatter-add": Program(
        calibrated,
        ("contended-scatter", "dominant-operator"),
        says="millions of numbers are added to 64, which wait for each other; bincount adds in shared memory first",
    ),
}

KEPT: set[str] = set(PROGRAMS)

# On a CPU numbers are added one after the other in any case, and volumes of one frame are as fast as frames.
ON_GPU_ONLY: set[str] = {"bins-by-scatter-add", "frames-as-volume-convolution"}
