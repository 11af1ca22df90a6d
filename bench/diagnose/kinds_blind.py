"""A second blind test (library.py, BLIND): kinds of programs that the library did not have, with a fault and mended.

The faults were declared and committed before any of these was recorded. Detection, diffusion, adapters, speculative
decoding and embedding bags stand here, loops around models in kinds_blind_loops.py.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import kinds_blind_loops
from gpu_models import Machine, Program, Step, training


def overlaps(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Intersection over union, of all pairs; boxes are x0, y0, x1, y1."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    sizes = [(each[:, 2:] - each[:, :2]).prod(-1) for each in (boxes, others)]
    return both / (sizes[0][:, None] + sizes[1][None, :] - both).clamp(min=1e-6)


def suppressed_in_python(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Boxes that no better one hides, one at a time; asks the device after each whether any is left."""
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        kept.append(order[0])
        rest = order[1:]
        order = rest[overlaps(boxes[order[:1]], boxes[rest])[0] < 0.5]
    return torch.stack(kept)


def suppressed_together(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """The same by rounds over the whole matrix: a box stays if none that stays and is better hides it."""
    order = scores.argsort(descending=True)
    hides = (overlaps(boxes[order], boxes[order]) >= 0.5).triu(1).to(boxes.dtype)
    stays = torch.ones_like(scores)
    for _ in range(8):
        stays = (stays @ hides == 0).to(boxes.dtype)
    return order[stays.bool()]


def detection(on: Machine, fault: bool) -> Step:
    width, side = on.size(128, 16), on.size(64, 24)
    backbone: Any = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.Conv2d(width, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.Conv2d(width, 5, 1),
    )
    backbone = backbone.to(on.device, on.half, memory_format=torch.channels_last).eval()
    images = torch.randn(on.size(8, 2), 3, 4 * side, 4 * side, device=on.device, dtype=on.half)
    images = images.contiguous(memory_format=torch.channels_last)
    corners = torch.rand(len(images), side * side, 2, device=on.device) * side
    best, select = on.size(256, 64), suppressed_in_python if fault else suppressed_together

    @torch.inference_mode()
    def step():
        found = backbone(images).flatten(2).transpose(1, 2).float()
        boxes = torch.cat((corners, corners + 2 + found[..., :2].sigmoid() * 8), dim=-1)
        scores, which = found[..., 4].topk(best, dim=1)
        boxes = boxes.gather(1, which[..., None].expand(-1, -1, 4))
        return [select(each, score) for each, score in zip(boxes, scores, strict=True)]

    return step


class Stage(nn.Module):
    """A residual block of a UNet that is told the time of the diffusion and where in the image each pixel is."""

    def __init__(self, width: int, side: int, built_anew: bool):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time, self.place = nn.Linear(width, width), nn.Conv2d(2, width, 1)
        self.side, self.built_anew = side, built_anew
        self.register_buffer("grid", self.coordinates())

    def coordinates(self) -> torch.Tensor:
        line = torch.linspace(-1, 1, self.side)
        return torch.stack(torch.meshgrid(line, line, indexing="ij"))[None]

    def forward(self, x, times):
        grid = self.coordinates().to(x.device, x.dtype) if self.built_anew else self.grid.to(x.dtype)
        hidden = self.first(functional.silu(self.norm(x))) + self.time(times)[..., None, None] + self.place(grid)
        return x + self.second(functional.silu(hidden))


class SmallUnet(nn.Module):
    def __init__(self, width: int, side: int, blocks: int, built_anew: bool):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.outer = nn.ModuleList([Stage(width, side, built_anew) for _ in range(blocks)])
        self.inner = nn.ModuleList([Stage(width, side // 2, built_anew) for _ in range(blocks)])
        self.width, self.built_anew = width, built_anew
        self.register_buffer("frequencies", self.all_frequencies())

    def all_frequencies(self) -> torch.Tensor:
        return torch.tensor([math.exp(-9.2 * i / (self.width // 2)) for i in range(self.width // 2)])

    def forward(self, x, times):
        frequencies = self.all_frequencies().to(x.device) if self.built_anew else self.frequencies
        angles = times[:, None] * frequencies
        embedded = torch.cat((angles.sin(), angles.cos()), dim=1)
        x = self.enter(x)
        for block in self.outer:
            x = block(x, embedded)
        small = functional.avg_pool2d(x, 2)
        for block in self.inner:
            small = block(small, embedded)
        return self.leave(x + functional.interpolate(small, scale_factor=2))


def diffusion(on: Machine, fault: bool) -> Step:
    side = on.size(128, 32)
    model: Any = SmallUnet(on.size(128, 16), side, on.size(6, 3), fault)
    model = model.to(on.device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(on.size(4, 2), 4, side, side, device=on.device).contiguous(memory_format=torch.channels_last)

    def loss_of():
        times = torch.rand(len(images), device=on.device) * 1000
        noise = torch.randn_like(images)
        with on.autocast():
            return (model(images + noise, times) - noise).square().mean()

    return training(loss_of, optimizer)


class Adapted(nn.Module):
    """A frozen product and a trained one of low rank beside it."""

    def __init__(self, into: int, out: int, rank: int, dtype: torch.dtype):
        super().__init__()
        self.base = nn.Linear(into, out, bias=False, dtype=dtype).requires_grad_(False)
        self.down = nn.Linear(into, rank, bias=False)
        self.up = nn.Linear(rank, out, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class AdaptedBlock(nn.Module):
    def __init__(self, width: int, dtype: torch.dtype):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.project, self.merge = Adapted(width, 3 * width, 16, dtype), Adapted(width, width, 16, dtype)
        self.up, self.down = Adapted(width, 4 * width, 16, dtype), Adapted(4 * width, width, 16, dtype)
        self.heads = max(1, width // 128)

    def forward(self, x):
        q, k, v = self.project(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.merge(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


def adapters(on: Machine, fault: bool, *, length: int = 256) -> Step:
    """Short prompts on a wide frozen model: autocast casts every frozen weight, in every step, unless it is bf16."""
    width = on.size(4096, 128)
    base = torch.float32 if fault else on.half
    with torch.device(on.device):
        model = nn.Sequential(*[AdaptedBlock(width, base) for _ in range(on.size(4, 2))])
    data = torch.randn(on.size(2, 2), on.size(length, 16), width, device=on.device)
    trained = [each for each in model.parameters() if each.requires_grad]

    def loss_of():
        with on.autocast():
            return model(data).float().square().mean()

    return training(loss_of, torch.optim.AdamW(trained, lr=1e-4, fused=True))


class CachedLayer(nn.Module):
    cache: torch.Tensor

    def __init__(self, width: int, rows: int, longest: int, on: Machine):
        super().__init__()
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = max(1, width // 64)
        shape = (2, rows, self.heads, longest, width // self.heads)
        self.register_buffer("cache", torch.zeros(shape, device=on.device, dtype=on.half))

    def forward(self, x, begin: int):
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        end = begin + x.shape[1]
        self.cache[0, :, :, begin:end], self.cache[1, :, :, begin:end] = k, v
        seen = functional.scaled_dot_product_attention(q, self.cache[0, :, :, :end], self.cache[1, :, :, :end])
        return x + self.merge(seen.transpose(1, 2).flatten(2))


class Speaker(nn.Module):
    def __init__(self, width: int, layers: int, rows: int, longest: int, on: Machine):
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.layers = nn.ModuleList([CachedLayer(width, rows, longest, on) for _ in range(layers)])
        self.out = nn.Linear(width, 1000)

    def forward(self, tokens, begin: int):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, begin)
        return self.out(x).argmax(-1)


def speculative(on: Machine, fault: bool) -> Step:
    """A draft of four tokens and one check of them; the fault saves the large cache before, to go back to it."""
    rows, longest, drafted = on.size(16, 2), on.size(4096, 256), 4
    width = on.size(1024, 128)
    large = Speaker(width, on.size(8, 3), rows, longest, on).to(on.device, on.half).eval()
    small = Speaker(on.size(256, 64), 1, rows, longest, on).to(on.device, on.half).eval()
    token = torch.zeros(rows, 1, dtype=torch.long, device=on.device)
    begin = longest // 2

    @torch.inference_mode()
    def step():
        saved = [layer.cache.clone() for layer in large.layers] if fault else []
        drafts = [token]
        for i in range(drafted):
            drafts.append(small(drafts[-1], begin + i))
        checked = large(torch.cat(drafts, dim=1), begin)
        accepted = (checked[:, :-1] == torch.cat(drafts[1:], dim=1)).cumprod(1).sum(1)
        for layer, cache in zip(large.layers, saved, strict=False):
            layer.cache[:, :, :, begin + 1 :] = cache[:, :, :, begin + 1 :]
        return accepted

    return step


class Bags(nn.Module):
    def __init__(self, rows: int, width: int, padded: bool):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width) / 8)
        self.deep = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1))
        self.padded = padded

    def forward(self, batch):
        if self.padded:
            looked_up = functional.embedding(batch["padded"], self.table)
            x = (looked_up * batch["mask"][..., None]).sum(1)
        else:
            x = functional.embedding_bag(batch["ids"], self.table, batch["offsets"], mode="sum")
        return self.deep(x).squeeze(1)


def bags(on: Machine, fault: bool) -> Step:
    """Lists of 1 to 100 items, few of them long, summed up: padded to the longest, or as bags."""
    rows, count = on.size(200_000, 4000), on.size(16_384, 512)
    lengths = (100 * torch.rand(count).pow(4)).long() + 1
    ids = torch.randint(0, rows, (int(lengths.sum()),))
    offsets = lengths.cumsum(0) - lengths
    mask = torch.arange(int(lengths.max()))[None, :] < lengths[:, None]
    padded = torch.zeros(mask.shape, dtype=torch.long)
    padded[mask] = ids
    everything: dict[str, Any] = {"ids": ids, "offsets": offsets, "mask": mask.float(), "padded": padded}
    batch = {name: each.to(on.device) for name, each in everything.items()}
    labels = torch.rand(count, device=on.device)
    model = Bags(rows, on.size(128, 32), fault).to(on.device)

    def loss_of():
        return functional.binary_cross_entropy_with_logits(model(batch), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


PROGRAMS = {
    "detection-suppressed-in-python": Program(
        detection,
        ("repeated-operators", "host-sync"),
        near=("launch-overhead",),
        says="non-maximum suppression box by box, each asking the device what is left",
    ),
    "diffusion-constants-from-host": Program(
        diffusion,
        ("constant-copies", "host-compute", "pageable-copies"),
        near=("host-sync", "launch-overhead", "host-code"),
        says="the same coordinates and frequencies are built by the CPU and copied to the device in every step",
    ),
    "lora-frozen-base-in-fp32": Program(
        adapters,
        ("dtype-ping-pong",),
        near=("pointwise-unfused",),
        says="frozen fp32 weights are cast to bf16 in every step; keep the base in bf16",
    ),
    "speculative-saves-the-cache": Program(
        speculative,
        ("dominant-operator", "layout-copies"),
        near=("memory-spike", "growing-input", "pointwise-unfused"),
        says="the whole cache is copied in every round; remember the length instead",
    ),
    "bags-padded-to-the-longest": Program(
        bags,
        ("padding", "dominant-operator", "pointwise-unfused"),
        near=("memory-spike",),
        says="most looked-up rows are padding; embedding_bag reads what there is and sums while reading",
    ),
    "healthy-lora": Program(
        lambda on, _: adapters(on, False, length=2048),
        (),
        near=("pointwise-unfused",),
        says="large bf16 products; norms and activations could be fused for a little",
    ),
    **kinds_blind_loops.PROGRAMS,
}

ON_GPU_ONLY = {"lora-frozen-base-in-fp32", *kinds_blind_loops.ON_GPU_ONLY}
