"""Common kinds of wasted or badly shaped computation (library.py, COMMON), each with one planted fault and mended.

Rules are written and tuned with these. kinds_common_compute_kept.py has another program of each kind, which is scored
and never tuned with. `findings` begins with the name that a rule of its own has or would have.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Language, pictures, stack, to_device
from kinds_next import perceptron


def masked_words(on: Machine, fault: bool) -> Step:
    """A masked language model: the vocabulary is scored at every place, or where a word is masked (one of seven)."""
    words, length, width = on.size(32_000, 4000), on.size(512, 64), on.size(1024, 64)
    model = Language(words, length, width, on.size(16, 2), on.size(4, 2)).to(on.device)
    text = torch.randint(0, words, (on.size(32, 4), length), device=on.device)
    places = torch.randperm(text.numel(), device=on.device)[: text.numel() // 7]

    def loss_of():
        with on.autocast():
            hidden = model.hidden(text).flatten(0, 1)
            scores = model.head(hidden)[places] if fault else model.head(hidden[places])
            return functional.cross_entropy(scores, text.flatten()[places])

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def normalized(adjacency):
    """With an edge of each node to itself, and each edge divided by the roots of both ends' degrees."""
    edges = adjacency + torch.eye(len(adjacency), device=adjacency.device, dtype=adjacency.dtype)
    root = edges.sum(1).rsqrt()
    return root[:, None] * edges * root[None]


def citations(on: Machine, fault: bool) -> Step:
    """A graph network trained on one whole graph: its adjacency matrix is normalized in every step, or once."""
    nodes, width = on.size(16_384, 1200), on.size(256, 16)
    adjacency = (torch.rand(nodes, nodes, device=on.device) < 0.01).to(on.half)
    kept = normalized(adjacency)
    x = torch.randn(nodes, width, device=on.device, dtype=on.half)
    first, second = (nn.Linear(width, width).to(on.device, on.half) for _ in range(2))
    labels = torch.randint(0, width, (nodes,), device=on.device)

    def loss_of():
        edges = normalized(adjacency) if fault else kept
        return functional.cross_entropy(second(edges @ torch.relu(first(edges @ x))), labels)

    return training(loss_of, torch.optim.AdamW([*first.parameters(), *second.parameters()], lr=1e-3, fused=True))


class Critic(nn.Module):
    """The value of each of many actions in each state. `repeats`: the states are repeated before they are encoded."""

    def __init__(self, seen: int, width: int, action: int, repeats: bool):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(seen, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Sequential(nn.Linear(width + action, width // 2), nn.GELU(), nn.Linear(width // 2, 1))
        self.repeats = repeats

    def forward(self, states, actions):
        count = actions.shape[1]
        if self.repeats:
            encoded = self.trunk(states.repeat_interleave(count, dim=0))
        else:
            encoded = self.trunk(states).repeat_interleave(count, dim=0)
        return self.head(torch.cat((encoded, actions.flatten(0, 1)), dim=1)).view(len(states), count)


def values(on: Machine, fault: bool) -> Step:
    count, actions, seen = on.size(2048, 64), on.size(64, 24), on.size(512, 96)
    model = Critic(seen, on.size(1024, 192), on.size(64, 16), fault).to(on.device)
    states = torch.randn(count, seen, device=on.device)
    tried = torch.randn(count, actions, on.size(64, 16), device=on.device)
    wanted = torch.randn(count, actions, device=on.device)

    def loss_of():
        with on.autocast():
            found = model(states, tried)
        return functional.mse_loss(found.float(), wanted)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def looked_up_by_product(ids, table):
    return functional.one_hot(ids, len(table)).to(table.dtype) @ table


def categories(on: Machine, fault: bool) -> Step:
    """Rows of a table by a product with one-hot vectors, or by lookup."""
    rows, width, count = on.size(8192, 2500), on.size(512, 64), on.size(32_768, 512)
    table = nn.Parameter(torch.randn(rows, width, device=on.device, dtype=on.half) * 0.02)
    model = perceptron(on, width, 4 * width, width).to(on.half)
    ids = torch.randint(0, rows, (count,), device=on.device)
    wanted = torch.randn(count, width, device=on.device, dtype=on.half)
    rows_of = looked_up_by_product if fault else functional.embedding

    def loss_of():
        return functional.mse_loss(model(rows_of(ids, table)), wanted)

    return training(loss_of, torch.optim.AdamW([table, *model.parameters()], lr=1e-4, fused=True))


def distances_by_hand(x, centers):
    return (x[:, None] - centers[None]).pow(2).sum(-1)


def distances(x, centers):
    return x.square().sum(1, keepdim=True) - 2 * x @ centers.T + centers.square().sum(1)


def radial(on: Machine, fault: bool) -> Step:
    """A network of radial basis functions: differences of all pairs are written out and summed, or a product."""
    count, units, width = on.size(4096, 256), on.size(2048, 192), on.size(64, 32)
    x = torch.randn(count, width, device=on.device)
    centers = nn.Parameter(torch.randn(units, width, device=on.device))
    head = nn.Linear(units, 10).to(on.device)
    labels = torch.randint(0, 10, (count,), device=on.device)
    apart = distances_by_hand if fault else distances

    def loss_of():
        return functional.cross_entropy(head(torch.exp(-apart(x, centers) / width)), labels)

    return training(loss_of, torch.optim.AdamW([centers, *head.parameters()], lr=1e-3, fused=True))


class Patches(nn.Module):
    """A convolution of 3 by 3: `unfolds` writes all patches out and multiplies them with the weights."""

    def __init__(self, before: int, after: int, unfolds: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(after, before, 3, 3) / (9 * before) ** 0.5)
        self.unfolds = unfolds

    def forward(self, x):
        if not self.unfolds:
            return functional.conv2d(x, self.weight, padding=1)
        patches = functional.unfold(x, 3, padding=1)
        return (self.weight.flatten(1) @ patches).unflatten(-1, x.shape[2:])


def local_features(on: Machine, fault: bool) -> Step:
    width, count, side = on.size(64, 8), on.size(32, 4), on.size(128, 32)
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(3):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), Patches(width, width, fault)]
    model = to_device(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)), on)
    images = pictures(on, count, side)
    labels = torch.randint(0, 100, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


class Messages(nn.Module):
    """Each node gets the sum of what its neighbours send. `brackets`: their rows are taken by x[ids]."""

    def __init__(self, width: int, brackets: bool):
        super().__init__()
        self.mix, self.own, self.brackets = nn.Linear(width, width), nn.Linear(width, width), brackets

    def forward(self, x, sources, targets):
        sent = self.mix(x)
        sent = sent[sources] if self.brackets else sent.index_select(0, sources)
        return torch.relu(self.own(x) + torch.zeros_like(x).index_add_(0, targets, sent))


def molecules(on: Machine, fault: bool) -> Step:
    nodes, edges, width = on.size(100_000, 3000), on.size(1_000_000, 40_000), on.size(64, 32)
    layers = nn.ModuleList(Messages(width, fault) for _ in range(3)).to(on.device)
    x = torch.randn(nodes, width, device=on.device)
    sources, targets = torch.randint(0, nodes, (2, edges), device=on.device).unbind()
    wanted = torch.randn_like(x)

    def loss_of():
        hidden = x
        for layer in layers:
            hidden = layer(hidden, sources, targets)
        return functional.mse_loss(hidden, wanted)

    return training(loss_of, torch.optim.AdamW(layers.parameters(), lr=1e-3, fused=True))


def processes(on: Machine, fault: bool) -> Step:
    """Gaussian processes predict: the inverse of the covariance times the observations, or a system that is solved."""
    count, size, asked = on.size(64, 4), on.size(512, 160), on.size(256, 64)
    known, unknown = (torch.rand(count, n, 4, device=on.device) for n in (size, asked))
    observed = torch.randn(count, size, 1, device=on.device)
    network = perceptron(on, 4, on.size(128, 32), 8).eval()

    @torch.no_grad()
    def step():
        a, b = network(known), network(unknown)
        covariance = torch.exp(-torch.cdist(a, a)) + 0.1 * torch.eye(size, device=on.device)
        weights = torch.linalg.inv(covariance) @ observed if fault else torch.linalg.solve(covariance, observed)
        return torch.exp(-torch.cdist(b, a)) @ weights

    return step


class Kernelized(nn.Module):
    """Attention without a softmax: `quadratic` multiplies queries with keys first, which is a matrix of all pairs."""

    def __init__(self, width: int, heads: int, quadratic: bool):
        super().__init__()
        self.norm, self.heads, self.quadratic = nn.LayerNorm(width), heads, quadratic
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = functional.relu(q), functional.relu(k) / x.shape[1]
        mixed = (q @ k.mT) @ v if self.quadratic else q @ (k.mT @ v)
        return x + self.out(mixed.transpose(1, 2).flatten(2))


def long_documents(on: Machine, fault: bool) -> Step:
    width, length = on.size(512, 64), on.size(4096, 512)
    model = nn.Sequential(*[Kernelized(width, on.size(8, 2), fault) for _ in range(on.size(4, 2))]).to(on.device)
    x = torch.randn(on.size(8, 1), length, width, device=on.device)
    wanted = torch.randn_like(x)

    def loss_of():
        with on.autocast():
            return functional.mse_loss(model(x).float(), wanted)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def filtered(sound, filters):
    return functional.conv1d(sound, filters.flip(-1), padding=filters.shape[-1] - 1)[..., : sound.shape[-1]]


def filtered_by_fourier(sound, filters):
    size = 2 * sound.shape[-1]
    both = torch.fft.rfft(sound, size) * torch.fft.rfft(filters[:, 0], size)
    return torch.fft.irfft(both, size)[..., : sound.shape[-1]]


def reverberation(on: Machine, fault: bool) -> Step:
    """Sounds are filtered with learned echoes of thousands of samples: a convolution, or Fourier transforms."""
    length, taps = on.size(65_536, 8192), on.size(2048, 512)
    sound = torch.randn(on.size(8, 2), 1, length, device=on.device)
    filters = nn.Parameter(torch.randn(8, 1, taps, device=on.device) / taps)
    mix = nn.Conv1d(8, 1, 9, padding=4).to(on.device)
    wanted = torch.randn_like(sound)
    run = filtered if fault else filtered_by_fourier

    def loss_of():
        return functional.mse_loss(mix(torch.tanh(run(sound, filters))), wanted)

    return training(loss_of, torch.optim.AdamW([filters, *mix.parameters()], lr=1e-3, fused=True))


class Shared(nn.Module):
    """One weight for all samples. `expands`: given to bmm as if each sample had its own."""

    def __init__(self, width: int, expands: bool):
        super().__init__()
        self.weight, self.expands = nn.Parameter(torch.randn(width, width) / width**0.5), expands

    def forward(self, x):
        return torch.bmm(x, self.weight.expand(len(x), -1, -1)) if self.expands else x @ self.weight


def sets_of_few(on: Machine, fault: bool) -> Step:
    count, size, width = on.size(4096, 192), on.size(4, 2), on.size(512, 128)
    layers = [each for _ in range(3) for each in (Shared(width, fault), nn.GELU())]
    model = nn.Sequential(*layers).to(on.device, on.half)
    x = torch.randn(count, size, width, device=on.device, dtype=on.half)
    wanted = torch.randn_like(x)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return training(lambda: functional.mse_loss(model(x), wanted), optimizer)


def largest_singular(weight, left):
    """By one round of the power method, from the vector of the step before."""
    with torch.no_grad():
        right = functional.normalize(weight.T @ left, dim=0)
        left.copy_(functional.normalize(weight @ right, dim=0))
    return left @ weight @ right


def smooth_network(on: Machine, fault: bool) -> Step:
    """The largest singular value of each weight is held down: from all singular values, or by the power method."""
    width, count = on.size(512, 160), on.size(8192, 64)
    model = perceptron(on, width, width, width, width)
    x = torch.randn(count, width, device=on.device)
    wanted = torch.randn_like(x)
    weights = [each.weight for each in model if isinstance(each, nn.Linear)]
    lefts = [torch.randn(width, device=on.device) for _ in weights]

    def loss_of():
        if fault:
            norms = [torch.linalg.matrix_norm(each, 2) for each in weights]
        else:
            norms = [largest_singular(each, left) for each, left in zip(weights, lefts, strict=True)]
        return functional.mse_loss(model(x), wanted) + 0.01 * sum(norms)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


class Labels(nn.Module):
    """Features become classes of pixels. `enlarges_first`: all features are enlarged, and not only the classes."""

    def __init__(self, width: int, classes: int, enlarges_first: bool):
        super().__init__()
        self.classify, self.enlarges_first = nn.Conv2d(width, classes, 1), enlarges_first

    def forward(self, x):
        size = [4 * each for each in x.shape[2:]]
        if self.enlarges_first:
            return self.classify(functional.interpolate(x, size=size, mode="bilinear"))
        return functional.interpolate(self.classify(x), size=size, mode="bilinear")


def segmented(on: Machine, fault: bool) -> Step:
    width, count, side = on.size(256, 48), on.size(16, 2), on.size(256, 128)
    layers = [*stack(3, width, stride=2), *stack(width, width, stride=2), *stack(width, width)]
    model = to_device(nn.Sequential(*layers, Labels(width, 20, fault)), on)
    images = pictures(on, count, side)
    labels = torch.randint(0, 20, (count, side, side), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


def sums_by_adding(x, labels, classes: int):
    return torch.zeros(classes, x.shape[1], device=x.device, dtype=x.dtype).index_add_(0, labels, x)


def sums_by_product(x, labels, classes: int):
    return (labels == torch.arange(classes, device=x.device)[:, None]).to(x.dtype) @ x


def prototypes(on: Machine, fault: bool) -> Step:
    """The sum of each of ten classes: rows are added to ten rows one by one, or a product."""
    count, width = on.size(262_144, 1024), on.size(128, 32)
    model = perceptron(on, width, 2 * width, width).eval()
    x, labels = torch.randn(count, width, device=on.device), torch.randint(0, 10, (count,), device=on.device)
    sums_of = sums_by_adding if fault else sums_by_product

    @torch.inference_mode()
    def step():
        encoded = model(x)
        return (encoded @ sums_of(encoded, labels, 10).T).argmax(1)

    return step


PROGRAMS: dict[str, Program] = {
    "masked-words-scored-everywhere": Program(
        masked_words,
        ("discarded-results",),
        near=("dominant-operator", "memory-spike"),
        says="the head scores the vocabulary at every place, and one place in seven is used; index before the head",
    ),
    "adjacency-normalized-in-every-step": Program(
        citations,
        ("unchanged-work", "repeated-inputs", "constant-work"),
        near=("dominant-operator",),
        says="the adjacency matrix does not change, and is normalized in every step; once is enough",
    ),
    "states-repeated-before-their-encoder": Program(
        values,
        ("repeated-rows",),
        near=("dominant-operator", "repeated-inputs"),
        says="each state is encoded 64 times, once for each action; encode first, repeat the result",
    ),
    "rows-looked-up-by-one-hot-product": Program(
        categories,
        ("structured-product",),
        near=("dominant-operator", "memory-spike"),
        says="a product with one-hot vectors; nn.functional.embedding takes the rows",
    ),
    "distances-by-broadcast": Program(
        radial,
        ("broadcast-product", "dominant-operator"),
        near=("memory-spike",),
        says="differences of all pairs are written out, squared and summed; a product does it",
    ),
    "convolution-by-unfold": Program(
        local_features,
        ("overlapping-windows",),
        near=("layout-copies", "whole-copies", "dominant-operator"),
        says="all patches are written out, nine times the image; conv2d reads them where they are",
    ),
    "neighbours-by-brackets": Program(
        molecules,
        ("index-backward",),
        near=("dominant-operator",),
        says="backward of x[ids] sorts the ids and adds one after the other; that of index_select adds at once",
    ),
    "inverse-times-observations": Program(
        processes,
        ("matrix-decomposition",),
        near=("dominant-operator",),
        says="the inverse is computed for one product; linalg.solve",
    ),
    "attention-without-softmax-in-quadratic-order": Program(
        long_documents,
        ("contraction-order",),
        near=("dominant-operator", "attention-unfused"),
        says="(q k^T) v makes a matrix of all pairs; q (k^T v) is the same and far less work",
    ),
    "echo-by-convolution": Program(
        reverberation,
        ("slow-convolution", "dominant-operator"),
        says="a convolution with thousands of taps; Fourier transforms",
    ),
    "shared-weight-expanded-for-bmm": Program(
        sets_of_few,
        ("broadcast-operand",),
        near=("dominant-operator", "device-underfilled"),
        says="one weight is multiplied with few rows at a time, and has a gradient for each sample; matmul folds them",
    ),
    "spectral-norm-by-svd": Program(
        smooth_network,
        ("matrix-decomposition", "dominant-operator"),
        near=("host-sync", "launch-overhead"),
        says="all singular values of each weight for the largest one; the power method",
    ),
    "features-enlarged-before-classes": Program(
        segmented,
        ("repeated-rows",),
        near=("dominant-operator", "memory-spike"),
        says="256 channels are enlarged sixteen times before a 1x1 convolution to 20; enlarge the classes",
    ),
    "sums-of-ten-classes-by-index-add": Program(
        prototypes,
        ("contended-scatter", "dominant-operator"),
        says="thousands of rows are added to each of ten, which wait for each other; a product",
    ),
}

KEPT: set[str] = set()

# On a CPU rows are added one after the other in any case.
ON_GPU_ONLY: set[str] = {"sums-of-ten-classes-by-index-add"}
