"""Vision programs that no rule has seen (library.py, UNSEEN), each with one planted fault and mended."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training


def twice(before: int, after: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (before, after):
        layers += [nn.Conv2d(width, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Segmenter(nn.Module):
    """A U-Net with transposed convolutions."""

    def __init__(self, widths: list[int], classes: int):
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.enter = twice(3, widths[0])
        self.down = nn.ModuleList([twice(before, after) for before, after in pairs])
        self.raise_ = nn.ModuleList([nn.ConvTranspose2d(after, before, 2, 2) for before, after in reversed(pairs)])
        self.up = nn.ModuleList([twice(2 * before, before) for before, _ in reversed(pairs)])
        self.classes = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = [self.enter(x)]
        for down in self.down:
            kept.append(down(functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for enlarge, up in zip(self.raise_, self.up, strict=True):
            x = up(torch.cat((kept.pop(), enlarge(x)), dim=1))
        return self.classes(x)


def dice(scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    shares = scores.softmax(1)
    wanted = functional.one_hot(truth, scores.shape[1]).permute(0, 3, 1, 2)
    both = (shares * wanted).sum((2, 3))
    return 1 - (2 * both / (shares.sum((2, 3)) + wanted.sum((2, 3)) + 1)).mean()


def segmentation(on: Machine, fault: bool) -> Step:
    side, layout = on.size(256, 16), torch.contiguous_format if fault else torch.channels_last
    model: Any = Segmenter([64, 128, 256, 512] if on.is_gpu else [8, 16], 8)
    model = model.to(on.device, memory_format=layout)
    images = torch.randn(on.size(16, 2), 3, side, side, device=on.device).to(memory_format=layout)
    truth = torch.randint(0, 8, (len(images), side, side), device=on.device)

    def loss_of():
        with torch.autocast(on.device, dtype=torch.bfloat16, enabled=on.is_gpu and not fault):
            scores = model(images)
        return functional.cross_entropy(scores, truth) + dice(scores.float(), truth)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class NormByHand(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-6) * self.scale + self.shift


class GeluByHand(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1.0 + torch.erf(x / 2.0**0.5))


class VisionBlock(nn.Module):
    def __init__(self, width: int, heads: int, by_hand: bool):
        super().__init__()
        norm = NormByHand if by_hand else nn.LayerNorm
        self.heads = heads
        self.before, self.between = norm(width), norm(width)
        self.queries, self.pairs, self.out = (nn.Linear(width, n * width) for n in (1, 2, 1))
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), GeluByHand() if by_hand else nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        y = self.before(x)
        q = self.queries(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.pairs(y).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class Classifier(nn.Module):
    def __init__(self, layers: int, width: int, patches: int, by_hand: bool):
        super().__init__()
        self.enter = nn.Linear(3 * 16 * 16, width)
        self.token, self.place = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(patches + 1, width))
        self.blocks = nn.Sequential(*[VisionBlock(width, max(1, width // 64), by_hand) for _ in range(layers)])
        self.head = nn.Linear(width, 100)

    def forward(self, patches):
        x = torch.cat((self.token.expand(len(patches), 1, -1), self.enter(patches)), dim=1) + self.place
        return self.head(self.blocks(x)[:, 0])


def norms_by_hand(on: Machine, fault: bool) -> Step:
    patches = on.size(196, 48)
    model = Classifier(on.size(6, 2), on.size(768, 96), patches, fault).to(on.device)
    data = torch.randn(on.size(64, 8), patches, 768, device=on.device)
    labels = torch.randint(0, 100, (len(data),), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(data), labels, label_smoothing=0.1)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def generator(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(128, 8 * width, 4, 1, 0, bias=False)]
    for times in (4, 2, 1):
        layers += [nn.BatchNorm2d(2 * times * width), nn.ReLU(True)]
        layers.append(nn.ConvTranspose2d(2 * times * width, times * width, 4, 2, 1, bias=False))
    layers += [nn.BatchNorm2d(width), nn.ReLU(True), nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh()]
    return nn.Sequential(*layers)


def critic(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for times in (1, 2, 4):
        layers.append(nn.Conv2d(times * width, 2 * times * width, 4, 2, 1, bias=False))
        layers += [nn.BatchNorm2d(2 * times * width), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4), nn.Flatten(0))


def adversaries(on: Machine, fault: bool) -> Step:
    """A GAN whose loop gives the cached memory back after every iteration, against running out of it."""
    models: list[Any] = [generator(on.size(96, 4)), critic(on.size(96, 4))]
    make, judge = (each.to(on.device, memory_format=torch.channels_last) for each in models)
    of_make, of_judge = (
        torch.optim.Adam(each.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True) for each in (make, judge)
    )
    real = torch.randn(on.size(192, 2), 3, 64, 64, device=on.device).to(memory_format=torch.channels_last)

    def step():
        with on.autocast():
            fake = make(torch.randn(len(real), 128, 1, 1, device=on.device))
            loss = functional.relu(1 - judge(real)).mean() + functional.relu(1 + judge(fake.detach())).mean()
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        with on.autocast():
            loss = -judge(fake).mean()
        of_make.zero_grad()
        loss.backward()
        of_make.step()
        if fault:
            del fake, loss
            on.empty_cache()

    return step


class Codes(nn.Module):
    """The nearest code for every position, with a gradient that goes straight through."""

    def __init__(self, count: int, width: int, by_broadcast: bool):
        super().__init__()
        self.codes, self.by_broadcast = nn.Parameter(torch.randn(count, width)), by_broadcast

    def forward(self, x):
        flat = x.permute(0, 2, 3, 1).flatten(0, 2).float()
        with torch.no_grad():
            if self.by_broadcast:
                distance = ((flat[:, None] - self.codes[None]) ** 2).sum(-1)
            else:
                distance = self.codes.square().sum(-1) - 2 * flat @ self.codes.t()
            nearest = distance.argmin(-1)
        code = functional.embedding(nearest, self.codes)
        loss = functional.mse_loss(code, flat.detach()) + 0.25 * functional.mse_loss(flat, code.detach())
        out = (flat + (code - flat).detach()).view(len(x), *x.shape[2:], -1).permute(0, 3, 1, 2)
        return out, loss


def codebook(on: Machine, fault: bool) -> Step:
    width = on.size(128, 16)
    enter: Any = nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1), nn.SiLU(), nn.Conv2d(width, width, 4, 2, 1), nn.SiLU(), nn.Conv2d(width, 64, 1)
    )
    leave: Any = nn.Sequential(nn.ConvTranspose2d(64, width, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1))
    codes = Codes(on.size(1024, 96), 64, fault).to(on.device)
    enter, leave = (each.to(on.device, memory_format=torch.channels_last) for each in (enter, leave))
    images = torch.randn(on.size(16, 4), 3, on.size(128, 32), on.size(128, 32), device=on.device)
    images = images.to(memory_format=torch.channels_last)

    def loss_of():
        with on.autocast():
            coded, loss = codes(enter(images))
            return functional.mse_loss(leave(coded), images) + loss

    every = [*enter.parameters(), *codes.parameters(), *leave.parameters()]
    return training(loss_of, torch.optim.AdamW(every, lr=1e-4, fused=True))


def pairs_by_host(labels: torch.Tensor) -> torch.Tensor:
    same = torch.zeros(len(labels), len(labels))
    for i in range(len(labels)):
        for j in range(len(labels)):
            if i != j and labels[i] == labels[j]:
                same[i, j] = 1.0
    return same.to(labels.device)


def pairs_by_device(labels: torch.Tensor) -> torch.Tensor:
    return (labels[:, None] == labels).float().fill_diagonal_(0)


def contrast(on: Machine, fault: bool) -> Step:
    """Supervised contrast: which pairs belong together is asked label by label; mended by one comparison."""
    width = on.size(64, 16)
    layers: list[nn.Module] = []
    for i in range(5):
        before, after = 3 if i == 0 else width * 2 ** (i - 1), width * 2**i
        layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width * 16, 128))
    model = model.to(on.device, memory_format=torch.channels_last)
    images = torch.randn(on.size(32, 24), 3, on.size(128, 32), on.size(128, 32), device=on.device)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.arange(len(images), device=on.device) % 8

    def loss_of():
        with on.autocast():
            x = functional.normalize(model(images), dim=-1)
        likeness = (x @ x.t()).float() / 0.1
        likeness = likeness - torch.eye(len(x), device=x.device) * 1e4
        same = pairs_by_host(labels) if fault else pairs_by_device(labels)
        return -(same * likeness.log_softmax(-1)).sum(-1).div(same.sum(-1)).mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Inverted(nn.Module):
    """A MobileNet's block: wide inside, depthwise in the middle."""

    def __init__(self, width: int):
        super().__init__()
        inside = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(width, inside, 1, bias=False),
            nn.BatchNorm2d(inside),
            nn.Hardswish(),
            nn.Conv2d(inside, inside, 3, padding=1, groups=inside, bias=False),
            nn.BatchNorm2d(inside),
            nn.Hardswish(),
            nn.Conv2d(inside, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return x + self.body(x)


def averaged(on: Machine, fault: bool) -> Step:
    """A slow copy of the weights, moved tensor by tensor after each step; mended by one call for all of them."""
    width = on.size(32, 4)
    blocks = [Inverted(width) for _ in range(on.size(12, 16))]
    model = nn.Sequential(
        nn.Conv2d(3, width, 4, 4), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)
    ).to(on.device)
    slow = copy.deepcopy(model).requires_grad_(False)
    images = torch.randn(on.size(32, 2), 3, on.size(96, 16), on.size(96, 16), device=on.device)
    labels = torch.randint(0, 100, (len(images),), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    train = training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True))
    moved = [(a, b) for a, b in zip(slow.state_dict().values(), model.state_dict().values(), strict=True)]
    floats = [(a, b) for a, b in moved if a.is_floating_point()]
    slow_floats, model_floats = [a for a, _ in floats], [b for _, b in floats]

    @torch.no_grad()
    def update():
        if not fault:
            torch._foreach_lerp_(slow_floats, model_floats, 0.001)
            return
        now = model.state_dict()
        for name, value in slow.state_dict().items():
            if value.is_floating_point():
                value.mul_(0.999).add_(now[name], alpha=0.001)

    def step():
        train()
        update()

    return step


PROGRAMS = {
    "unet-without-autocast": Program(
        segmentation,
        ("fp32-matmul", "layout-copies", "tensor-cores-unused"),
        says="convolutions in fp32 on channels-first tensors: bf16 autocast and channels_last",
    ),
    "vit-norms-by-hand": Program(
        norms_by_hand,
        ("pointwise-unfused",),
        says="LayerNorm and GELU as chains of pointwise operators: the fused operators, or torch.compile",
    ),
    "gan-empties-cache": Program(
        adversaries,
        ("allocator-thrash",),
        near=("host-sync",),
        says="torch.cuda.empty_cache() in every iteration: cudaFree and cudaMalloc in each step",
    ),
    "codebook-by-broadcast": Program(
        codebook,
        ("pointwise-unfused", "memory-spike", "dominant-operator"),
        says="distances by subtracting every pair writes positions x codes x width: a matmul, or torch.cdist",
    ),
    "contrastive-pairs-on-host": Program(
        contrast,
        ("host-sync", "repeated-operators"),
        near=("launch-overhead", "host-code"),
        says="Python loops compare two labels at a time, and wait for the device each time: one broadcast comparison",
    ),
    "ema-by-parameter": Program(
        averaged,
        ("repeated-operators", "single-tensor-optimizer"),
        near=("launch-overhead",),
        says="the moving average of the weights is updated tensor by tensor: torch._foreach_lerp_",
    ),
}
