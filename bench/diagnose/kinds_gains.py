"""Programs that gains are fitted with: a few more kinds, sizes and mixes for each remedy, with the fault and mended.

They count as tuning: no score speaks of them. What a finding promises is fitted on these and on the other tuning
programs (calibrate.py), and the held-out half says how well that carries over.

    step = GAINS["boolean-index"].make(Machine("cuda"), True)      # True: with the fault
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, convolutions, gpt, training
from kinds_gains_device import DEVICE
from kinds_gains_host import HOST
from kinds_gains_models import adam, trained
from record_truth import Block

# ---- Fusing ----


class Gated(nn.Module):
    """A norm by hand, a gated product, dropout and a residual: what language models do between matmuls."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        normed = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        a, b = self.up(normed.to(x.dtype) * self.scale).chunk(2, dim=-1)
        return x + functional.dropout(self.down(functional.silu(a) * b), 0.1, self.training)


def compiled(model: nn.Module, fault: bool) -> Any:
    return model if fault else torch.compile(model)


def gated(on: Machine, fault: bool) -> Step:
    width = on.size(1024, 64)
    model = nn.Sequential(*[Gated(width) for _ in range(4)])
    return trained(on, compiled(model.to(on.device, on.half), fault), on.size(16384, 64), width)


def gated_inference(on: Machine, fault: bool) -> Step:
    width = on.size(2048, 64)
    model = compiled(nn.Sequential(*[Gated(width) for _ in range(6)]).to(on.device, on.half).eval(), fault)
    data = torch.randn(on.size(8192, 64), width, device=on.device, dtype=on.half)
    return lambda: torch.no_grad()(model)(data)


def long_loss(on: Machine, fault: bool) -> Step:
    """Scores in fp32 scaled, capped and normalized by hand over a large vocabulary."""
    rows, words = on.size(8192, 64), on.size(32768, 128)
    head = nn.Linear(512, words, bias=False).to(on.device, on.half)
    data = torch.randn(rows, 512, device=on.device, dtype=on.half)
    labels = torch.randint(0, words, (rows,), device=on.device)

    def loss_of(hidden):
        scores = 30 * torch.tanh(head(hidden).float() / 30)
        return (torch.logsumexp(scores, -1) - scores.gather(1, labels[:, None])[:, 0]).mean()

    chosen = loss_of if fault else torch.compile(loss_of)
    return training(lambda: chosen(data), adam(head))


def residual_images(on: Machine, fault: bool) -> Step:
    model: Any = nn.Sequential(*[Bottleneck(on.size(256, 16)) for _ in range(4)])
    model = compiled(model.to(on.device, on.half, memory_format=torch.channels_last), fault)
    data = torch.randn(on.size(64, 2), on.size(256, 16), 56, 56, device=on.device, dtype=on.half)
    data = data.to(memory_format=torch.channels_last)
    return training(lambda: model(data).float().square().mean(), torch.optim.SGD(model.parameters(), lr=0.01))


# ---- Convolutions ----


class Bottleneck(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        inner = width // 4
        sizes = ((width, inner, 1), (inner, inner, 3), (inner, width, 1))
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, k, padding=k // 2, bias=False) for a, b, k in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _ in sizes)

    def forward(self, x):
        out = x
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            out = norm(convolution(out))
            out = functional.relu(out if i < 2 else out + x)
        return out


def images_in(on: Machine, fault: bool, *, half: bool, narrow: bool, width: int = 256, side: int = 56) -> Step:
    """NCHW against channels last; with `narrow` the mended program also computes in bf16."""
    layout = torch.contiguous_format if fault else torch.channels_last
    model: Any = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), *[Bottleneck(width) for _ in range(4)])
    model = model.to(on.device, memory_format=layout)
    data = torch.randn(on.size(64, 2), 3, on.size(side, 8), on.size(side, 8), device=on.device)
    data = data.to(memory_format=layout)

    def loss_of():
        with torch.autocast(on.device, torch.bfloat16, enabled=on.is_gpu and (half or (narrow and not fault))):
            return model(data).float().square().mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01))


def exact_images(on: Machine, fault: bool) -> Step:
    step = images_in(on, False, half=False, narrow=False)

    def run():
        torch.backends.cudnn.allow_tf32 = not fault
        step()

    return run


# ---- Matrices in fp32 ----


def exact(on: Machine, fault: bool, *, rows: int, width: int) -> Step:
    width = on.size(width, 64)
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    step = trained(on, nn.Sequential(*layers), on.size(rows, 64), width, half=False)

    def run():
        torch.set_float32_matmul_precision("highest" if fault else "high")
        step()
        torch.set_float32_matmul_precision("highest")

    return run


# ---- Attention ----


class Attend(Block):
    causal, dropout, wide = True, 0.0, False

    def by_hand(self, q, k, v):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        if self.causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores.float() if self.wide else scores, dim=-1).to(v.dtype)
        return functional.dropout(weights, self.dropout) @ v


def attention(on: Machine, fault: bool, *, length: int, batch: int, width: int = 1024, **kind: Any) -> Step:
    train = kind.pop("train", True)

    class Chosen(Attend):
        def attend(self, q, k, v):
            if fault:
                return self.by_hand(q, k, v)
            return functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)

    for name, value in kind.items():
        setattr(Chosen, name, value)
    width = on.size(width, 64)
    model = nn.Sequential(*[Chosen(width, max(1, width // 64)) for _ in range(2)])
    shape = on.size(batch, 2), on.size(length, 32), width
    if train:
        return trained(on, model, *shape)
    data = torch.randn(*shape, device=on.device, dtype=on.half)
    model = model.to(on.device, on.half)
    return lambda: torch.no_grad()(model)(data)


class Masked(Block):
    given: torch.Tensor | None = None

    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=self.given, is_causal=self.given is None)


def masked(on: Machine, fault: bool) -> Step:
    """A mask of booleans in inference."""
    length, width = on.size(4096, 32), on.size(1024, 64)
    model = nn.Sequential(*[Masked(width, max(1, width // 64)) for _ in range(3)]).to(on.device, on.half)
    if fault:
        Masked.given = torch.ones(length, length, dtype=torch.bool, device=on.device).tril()
    data = torch.randn(2, length, width, device=on.device, dtype=on.half)

    def step():
        given, Masked.given = Masked.given, Masked.given if fault else None
        with torch.no_grad():
            model(data)
        Masked.given = given

    return step


GAINS = {
    **DEVICE,
    **HOST,
    "attention-dropout": Program(
        lambda on, fault: attention(on, fault, length=512, batch=32, causal=False, dropout=0.1), ("attention-unfused",)
    ),
    "attention-inference": Program(
        lambda on, fault: attention(on, fault, length=2048, batch=4, train=False, wide=True), ("attention-unfused",)
    ),
    "attention-long": Program(
        lambda on, fault: attention(on, fault, length=2048, batch=4, causal=False), ("attention-unfused",)
    ),
    "attention-wide-softmax": Program(
        lambda on, fault: attention(on, fault, length=1024, batch=8, wide=True), ("attention-unfused",)
    ),
    "convolutions-exact": Program(exact_images, ("fp32-matmul",)),
    "convolutions-fp32-nchw": Program(
        lambda on, fault: images_in(on, fault, half=False, narrow=True), ("layout-copies", "fp32-matmul")
    ),
    "convolutions-nchw": Program(lambda on, fault: images_in(on, fault, half=True, narrow=False), ("layout-copies",)),
    "convolutions-nchw-small": Program(
        lambda on, fault: images_in(on, fault, half=True, narrow=False, width=128, side=28), ("layout-copies",)
    ),
    "exact-large": Program(lambda on, fault: exact(on, fault, rows=8192, width=2048), ("fp32-matmul",)),
    "exact-small": Program(lambda on, fault: exact(on, fault, rows=4096, width=768), ("fp32-matmul",)),
    "fused-gated": Program(gated, ("pointwise-unfused",)),
    "fused-gated-inference": Program(gated_inference, ("pointwise-unfused",)),
    "fused-gpt": Program(lambda on, fault: gpt(on, layers=2, width=2048, compiled=not fault), ("pointwise-unfused",)),
    "fused-images": Program(residual_images, ("pointwise-unfused",)),
    "fused-loss": Program(long_loss, ("pointwise-unfused",)),
    "fused-plain-images": Program(lambda on, fault: convolutions(on, compiled=not fault), ("pointwise-unfused",)),
    "masked": Program(masked, ("attention-mask",)),
}
