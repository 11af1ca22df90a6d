"""What several programs of the sealed test (kinds_sealed.py) are built of, with nothing wrong in it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(rows, length, width))


class Layer(nn.Module):
    """A transformer's layer, norms first."""

    def __init__(self, width: int, attention: nn.Module):
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(width), attention, nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Patches(nn.Module):
    """A vision transformer up to its last layer."""

    def __init__(self, side: int, patch: int, width: int, heads: int, depth: int):
        super().__init__()
        self.patch, self.embed = patch, nn.Linear(3 * patch**2, width)
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, Attention(width, heads)) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, images):
        rows, _, side, _ = images.shape
        cut = images.view(rows, 3, side // self.patch, self.patch, side // self.patch, self.patch)
        x = self.embed(cut.permute(0, 2, 4, 1, 3, 5).reshape(rows, -1, self.embed.in_features)) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).mean(1)


def convolved(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]


def photos(on: Machine, count: int, side: int) -> torch.Tensor:
    return torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)


class Denoiser(nn.Module):
    """Residual convolutions that look at a text: the inside of a diffusion model, at one resolution."""

    def __init__(self, width: int, text: int, heads: int, depth: int):
        super().__init__()
        self.heads = heads
        self.first, self.last = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.time = nn.Linear(1, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.convolutions = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2 * depth))
        self.asks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.texts = nn.ModuleList(nn.Linear(text, 2 * width) for _ in range(depth))

    def convolved(self, which: int, x):
        seen = self.norms[which](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)  # no copy: channels are last in memory
        return self.convolutions[which](functional.silu(seen))

    def look(self, x, ask, answers, text):
        rows, width, high, wide = x.shape
        pixels = x.flatten(2).transpose(1, 2)
        q = ask(pixels).view(rows, high * wide, self.heads, -1).transpose(1, 2)
        k, v = answers(text).view(rows, -1, 2, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind()
        seen = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(rows, high * wide, width)
        return x + seen.transpose(1, 2).reshape(rows, width, high, wide)

    def forward(self, x, time, text):
        x = self.first(x) + self.time(time)[:, :, None, None]
        for i, (ask, answers) in enumerate(zip(self.asks, self.texts, strict=True)):
            x = x + self.convolved(2 * i + 1, self.convolved(2 * i, x))
            x = self.look(x, ask, answers, text)
        return self.last(x)
