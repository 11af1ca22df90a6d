"""A sealed test after merged speedups (library.py, MERGED): twenty-four programs with a fault and six without.

For a GPU and a CPU, declared and committed before any of these was recorded. Their kinds are those of pull requests
that made PyTorch code faster and were merged, in libraries of models, metrics, detection, speech, graphs, Gaussian
processes, point clouds, forecasts, reinforcement learning and recommenders, as often as one meets them: loops that one
call replaces, answers that the host waits for, work that is done again, copies, and operators that do far more than is
needed. About a third has no rule by name: there `findings` begins with the name that one would have, and holds another
only where that leads to the fault, too. `where` names the place: what a diagnosis has to mention, whatever it makes of
it. For programs without a fault `near` names what is true of them all the same.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import kinds_merged_loops
import kinds_merged_signals
import kinds_merged_space
import kinds_merged_text
import kinds_merged_vision
from gpu_models import Machine, Program, Step, training
from kinds_asked_models import pictures, stack, to_device
from kinds_next import perceptron


def clouds(on: Machine) -> Step:
    """A network of points: the same layers for each point, the maximum of each cloud, in bf16."""
    width, count, points = on.size(1024, 64), on.size(64, 10), on.size(2048, 160)
    reads, head = perceptron(on, 6, width, width, width), perceptron(on, width, width, 40)
    x = torch.randn(count, points, 6, device=on.device)
    labels = torch.randint(0, 40, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(head(reads(x).amax(1)), labels)

    parameters = [*reads.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def played(on: Machine) -> Step:
    """A policy and its value learn from a large batch, with advantages that were computed before."""
    sees, does, width, count = on.size(256, 32), on.size(16, 4), on.size(4096, 192), on.size(16_384, 256)
    body = perceptron(on, sees, width, width, width)
    acts, judges = nn.Linear(width, does).to(on.device), nn.Linear(width, 1).to(on.device)
    seen, reached = torch.randn(count, sees, device=on.device), torch.randn(count, device=on.device)
    advantages, before = torch.randn(count, device=on.device), torch.full((count,), -2.0, device=on.device)
    done = torch.randint(0, does, (count, 1), device=on.device)

    def loss_of():
        with on.autocast():
            x = functional.gelu(body(seen))
            scores, value = acts(x), judges(x)[:, 0]
        logs = scores.float().log_softmax(1)
        ratio = (logs.gather(1, done)[:, 0] - before).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        return functional.mse_loss(value.float(), reached) - gain + 0.01 * (logs.exp() * logs).sum(1).mean()

    parameters = [*body.parameters(), *acts.parameters(), *judges.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


class Sampled(nn.Module):
    """A layer of GraphSAGE: each node and the average of its neighbours, of which all have as many."""

    def __init__(self, width: int):
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, neighbours):
        others = x.index_select(0, neighbours.flatten()).unflatten(0, neighbours.shape).mean(1)
        return functional.relu(self.own(x) + self.others(others))


def linked(on: Machine) -> Step:
    """A graph network reads ten neighbours of each node, which were drawn before."""
    nodes, width = on.size(131_072, 2048), on.size(512, 64)
    layers = nn.ModuleList(Sampled(width) for _ in range(3)).to(on.device, on.half).eval()
    x = torch.randn(nodes, width, device=on.device, dtype=on.half)
    neighbours = torch.randint(0, nodes, (nodes, on.size(10, 5)), device=on.device)

    @torch.inference_mode()
    def step():
        y = x
        for layer in layers:
            y = layer(y, neighbours)
        return y

    return step


def enlarged(on: Machine) -> Step:
    """Super-resolution: convolutions in bf16 and channels_last at the small size, one pixel shuffle at the end."""
    width, count, side = on.size(192, 24), on.size(16, 2), on.size(192, 36)
    layers = [*stack(3, *[width] * 6, norm=False), nn.Conv2d(width, 3 * 16, 3, padding=1), nn.PixelShuffle(4)]
    model = to_device(nn.Sequential(*layers), on)
    images = pictures(on, count, side)
    wanted = pictures(on, count, 4 * side)

    def loss_of():
        with on.autocast():
            return functional.l1_loss(model(images), wanted)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def fitted(on: Machine) -> Step:
    """A Gaussian process learns its lengths: the covariance is another in each step, and has to be factored again."""
    count = on.size(4096, 448)
    places, seen = torch.randn(count, 8, device=on.device), torch.randn(count, 1, device=on.device)
    lengths = nn.Parameter(torch.zeros(8, device=on.device))
    noise = nn.Parameter(torch.zeros((), device=on.device))

    def loss_of():
        near = places / lengths.exp()
        norms = near.square().sum(1)
        matrix = torch.exp(near @ near.mT - (norms + norms[:, None]) / 2)
        factor = torch.linalg.cholesky(matrix + torch.diag_embed(noise.exp().expand(count)))
        white = torch.linalg.solve_triangular(factor, seen, upper=False)
        return white.square().sum() / 2 + factor.diagonal().log().sum()

    return training(loss_of, torch.optim.Adam([lengths, noise], lr=1e-3, fused=True))


def ranked(on: Machine) -> Step:
    """A ranker of advertisements: one table of all columns with sparse gradients, and large layers in bf16."""
    columns, rows, width, count = on.size(32, 12), on.size(10_000, 500), on.size(64, 16), on.size(16_384, 192)
    table = nn.Embedding(columns * rows, width, sparse=True).to(on.device)
    model = perceptron(on, columns * width, on.size(4096, 256), on.size(4096, 256), on.size(1024, 64), 1)
    seen = torch.randint(0, rows, (count, columns), device=on.device) + torch.arange(columns, device=on.device) * rows
    labels = torch.randint(0, 2, (count,), device=on.device).float()
    dense = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    sparse = torch.optim.SGD(table.parameters(), lr=0.01)

    def step():
        for optimizer in (dense, sparse):
            optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            scores = model(table(seen).flatten(1))[:, 0]
        functional.binary_cross_entropy_with_logits(scores.float(), labels).backward()
        for optimizer in (dense, sparse):
            optimizer.step()

    return step


HEALTHY = {
    "healthy-point-network": Program(
        lambda on, _: clouds(on),
        (),
        near=("pointwise-unfused",),
        says="large products in bf16 for all points at once; activations could be fused",
    ),
    "healthy-policy-update": Program(
        lambda on, _: played(on),
        (),
        near=("pointwise-unfused", "dominant-operator"),
        says="large products in bf16; the losses are small tensors",
    ),
    "healthy-graph-layers": Program(
        lambda on, _: linked(on),
        (),
        near=("pointwise-unfused", "dominant-operator"),
        says="rows of neighbours are copied and averaged, as a layer of neighbours needs, with products in bf16",
    ),
    "healthy-super-resolution": Program(
        lambda on, _: enlarged(on),
        (),
        near=("pointwise-unfused", "layout-copies", "dtype-ping-pong"),
        says="convolutions in bf16 and channels_last at the small size; the pixel shuffle copies once",
    ),
    "healthy-process-fitted": Program(
        lambda on, _: fitted(on),
        (),
        near=("matrix-decomposition", "dominant-operator", "fp32-matmul", "pointwise-unfused", "tensor-cores-unused"),
        says="the covariance changes in every step, and its Cholesky factor is what the loss is made of",
    ),
    "healthy-ad-ranker": Program(
        lambda on, _: ranked(on),
        (),
        near=("pointwise-unfused", "dominant-operator", "many-optimizers"),
        says="one lookup for all columns, sparse gradients, large products in bf16",
    ),
}

PROGRAMS = {
    **kinds_merged_vision.PROGRAMS,
    **kinds_merged_text.PROGRAMS,
    **kinds_merged_signals.PROGRAMS,
    **kinds_merged_space.PROGRAMS,
    **kinds_merged_loops.PROGRAMS,
    **HEALTHY,
}

# On a CPU unique(dim=0) calls three operators for each row, more than a recording of this size should hold; and masks
# of labels cost as much there as numbers of 64 bits.
ON_GPU_ONLY = {"voxels-by-unique-rows", "dice-through-64-bit-labels"}
