"""Vision and diffusion programs of the library (library.py), each with one planted fault and mended."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from record_truth import Block


class Residual(nn.Module):
    def __init__(self, before: int, width: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.short = nn.Conv2d(before, width, 1, stride, bias=False) if before != width else nn.Identity()

    def forward(self, x):
        return functional.relu(self.body(x) + self.short(x))


def resnet(widths=(64, 64, 128, 128, 256, 256, 512, 512), classes: int = 1000) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    before = widths[0]
    for width in widths:
        layers.append(Residual(before, width, 2 if width != before else 1))
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def resnet_layout(on: Machine, fault: bool) -> Step:
    """fp32 and NCHW; mended by channels_last and bf16."""
    layout = torch.contiguous_format if fault else torch.channels_last
    model: Any = resnet((64, 64, 128, 128, 256, 256, 512, 512) if on.is_gpu else (8, 16))
    model = model.to(on.device, memory_format=layout)
    images = torch.randn(on.size(128, 4), 3, on.size(160, 32), on.size(160, 32), device=on.device)
    images = images.to(memory_format=layout)
    labels = torch.randint(0, 1000, (len(images),), device=on.device)

    def loss_of():
        with torch.autocast(on.device, dtype=torch.bfloat16, enabled=on.is_gpu and not fault):
            return functional.cross_entropy(model(images), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


class Vit(nn.Module):
    def __init__(self, layers: int, width: int, side: int):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.place = nn.Parameter(torch.zeros(1, (side // 16) ** 2, width))
        self.blocks = nn.Sequential(*[Block(width, max(1, width // 64)) for _ in range(layers)])
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.place).mean(1))


def vit_images(on: Machine, fault: bool) -> Step:
    """Images become normalized floats on the CPU, and are copied as such; mended by copying bytes."""
    side, batch = on.size(224, 32), on.size(64, 8)
    model = Vit(6, on.size(512, 64), side).to(on.device)
    images = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8)
    if on.is_gpu and not fault:
        images = images.pin_memory()
    labels = torch.randint(0, 1000, (batch,), device=on.device)
    mean, spread = torch.full((1, 3, 1, 1), 0.45), torch.full((1, 3, 1, 1), 0.22)
    if not fault:
        mean, spread = mean.to(on.device), spread.to(on.device)

    def loss_of():
        x = images if fault else images.to(on.device, non_blocking=True)
        x = (x.float().div(255) - mean) / spread
        with on.autocast():
            return functional.cross_entropy(model(x.to(on.device)), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def detections(on: Machine, fault: bool) -> Step:
    """Candidates by class with boolean masks, whose sizes the host waits for; mended by a fixed number of them."""
    model = resnet((32, 64, 128) if on.is_gpu else (8,), 256).to(on.device).eval()
    images = torch.randn(on.size(12, 4), 3, on.size(256, 32), on.size(256, 32), device=on.device)
    head = nn.Linear(256, 12 * 100).to(on.device)
    boxes = torch.rand(len(images), 100, 4, device=on.device)

    @torch.no_grad()
    def step():
        scores = head(model(images)).view(len(images), 12, 100).sigmoid()
        if not fault:
            best, which = scores.topk(10, dim=2)
            picked = boxes[:, None].expand(-1, 12, -1, -1).gather(2, which[..., None].expand(-1, -1, -1, 4))
            return best, picked.clamp(0, 1)
        out = []
        for image, of_image in zip(boxes, scores, strict=True):
            for of_class in of_image:
                keep = of_class > 0.5
                out.append((of_class[keep], image[keep].clamp(0, 1)))
        return out

    return step


def confusion(on: Machine, fault: bool) -> Step:
    """Metrics of a segmentation: every class counted and read by itself; mended by one bincount, read every epoch."""
    model = nn.Sequential(*[nn.Conv2d(3 if i == 0 else 32, 32, 3, padding=1) for i in range(6)]).to(on.device)
    images = torch.randn(on.size(16, 2), 3, on.size(192, 24), on.size(192, 24), device=on.device)
    truth = torch.randint(0, 32, (len(images), *images.shape[2:]), device=on.device)
    total = torch.zeros(32 * 32, device=on.device, dtype=torch.long)
    shares: list[float] = []

    def step():
        with on.autocast():
            scores = model(images)
            loss = functional.cross_entropy(scores, truth)
        loss.backward()
        model.zero_grad()
        said = scores.detach().argmax(1)
        if not fault:
            total.add_(
                torch.zeros_like(total).scatter_add_(0, (truth * 32 + said).flatten(), torch.ones_like(truth).flatten())
            )
            return
        shares.clear()
        for each in range(32):
            both = ((said == each) & (truth == each)).sum().item()
            either = ((said == each) | (truth == each)).sum().item()
            shares.append(both / max(1, either))

    return step


class FloatNorm(nn.GroupNorm):
    """As in well-known diffusion code: the norm is computed in fp32, whatever comes in."""

    def forward(self, x):
        return functional.group_norm(x.float(), self.num_groups, self.weight.float(), self.bias.float()).type(x.dtype)


class UNet(nn.Module):
    def __init__(self, width: int, norm: type[nn.GroupNorm]):
        super().__init__()

        def block(before, after):
            return nn.Sequential(norm(8, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))

        self.enter, self.leave = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down = nn.ModuleList([block(width, width), block(width, 2 * width)])
        self.middle = nn.Sequential(block(2 * width, 2 * width), block(2 * width, 2 * width))
        self.up = nn.ModuleList([block(4 * width, width), block(2 * width, width)])
        self.time = nn.Linear(1, width)

    def forward(self, x, time):
        x = self.enter(x) + self.time(time)[..., None, None]
        first = self.down[0](x)
        second = self.down[1](functional.avg_pool2d(first, 2))
        x = self.middle(functional.avg_pool2d(second, 2))
        x = self.up[0](torch.cat((functional.interpolate(x, scale_factor=2.0), second), 1))
        return self.leave(self.up[1](torch.cat((functional.interpolate(x, scale_factor=2.0), first), 1)))


def unet_norm(on: Machine, fault: bool) -> Step:
    """Diffusion training in bf16 whose norms cast to fp32 and back."""
    model: Any = UNet(on.size(128, 16), FloatNorm if fault else nn.GroupNorm).to(on.device, on.half)
    model = model.to(memory_format=torch.channels_last)
    images = torch.randn(on.size(32, 2), 3, on.size(64, 16), on.size(64, 16), device=on.device, dtype=on.half)
    images = images.to(memory_format=torch.channels_last)
    time = torch.rand(len(images), 1, device=on.device, dtype=on.half)
    return training(
        lambda: (model(images, time) - images).square().mean(),
        torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True),
    )


def sampler(on: Machine, fault: bool) -> Step:
    """Diffusion sampling whose coefficients are read from the device each time; mended by a table in Python."""
    model: Any = UNet(on.size(64, 16), nn.GroupNorm).to(on.device, on.half).eval()
    model = model.to(memory_format=torch.channels_last)
    noise = torch.randn(4, 3, on.size(32, 16), on.size(32, 16), device=on.device, dtype=on.half)
    noise = noise.to(memory_format=torch.channels_last)
    alphas = torch.linspace(0.99, 0.9, 20, device=on.device).cumprod(0)
    table = alphas.tolist()
    times = torch.arange(20, device=on.device, dtype=on.half).view(20, 1, 1).expand(20, 4, 1) / 20

    @torch.no_grad()
    def step():
        x = noise
        for i in range(20):
            alpha = alphas[i].item() if fault else table[i]
            guess = model(x, times[i])
            if fault and torch.isnan(guess).any():
                raise ValueError("the sampler diverged")
            x = (x - (1 - alpha) ** 0.5 * guess) / alpha**0.5
        return x

    return step


PROGRAMS = {
    "resnet-fp32-nchw": Program(resnet_layout, ("layout-copies", "fp32-matmul", "tensor-cores-unused")),
    "vit-images-on-the-host": Program(vit_images, ("host-compute",), near=("pageable-copies", "input-bound")),
    "detection-boolean-masks": Program(detections, ("host-sync", "repeated-operators"), near=("launch-overhead",)),
    "segmentation-metrics": Program(confusion, ("host-sync", "repeated-operators")),
    "diffusion-norm-in-fp32": Program(unet_norm, ("dtype-ping-pong",), near=("pointwise-unfused",)),
    "diffusion-sampler-reads": Program(sampler, ("host-sync",), near=("launch-overhead",)),
}
