"""Models of the asked test (library.py, ASKED): attention with kept keys, a decoder, convolutions."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right

from gpu_models import Machine

Kept = tuple[torch.Tensor, torch.Tensor]


class Attends(nn.Module):
    """Fused attention; with `kept`, keys and values of what came before are put in front of the new ones."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, kept: Kept | None = None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if kept is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            before = [each.expand(len(x), -1, -1, -1) for each in kept]
            k, v = torch.cat((before[0], k), dim=2), torch.cat((before[1], v), dim=2)
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(q.shape[2], k.shape[2]))
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class Stage(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attends = Attends(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, kept: Kept | None = None):
        y, now = self.attends(self.first(x), kept)
        x = x + y
        return x + self.mlp(self.second(x)), now


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, depth: int, causal: bool = False):
        super().__init__()
        self.stages = nn.ModuleList(Stage(width, heads, causal) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for stage in self.stages:
            x, _ = stage(x)
        return self.norm(x)

    def after(self, x, kept: list[Kept]):
        """As forward, of tokens that follow those whose keys and values were kept."""
        for stage, each in zip(self.stages, kept, strict=True):
            x, _ = stage(x, each)
        return self.norm(x)

    def keep(self, x) -> list[Kept]:
        kept = []
        for stage in self.stages:
            x, now = stage(x)
            kept.append(now)
        return kept


class Language(nn.Module):
    """A decoder of text; `hidden` is what its head sees."""

    def __init__(self, words: int, length: int, width: int, heads: int, depth: int):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.body = Transformer(width, heads, depth, causal=True)
        self.head = nn.Linear(width, words, bias=False)

    def embed(self, text, begin: int = 0):
        return self.words(text) + self.places.weight[begin : begin + text.shape[1]]

    def hidden(self, text):
        return self.body(self.embed(text))

    def forward(self, text):
        return self.head(self.hidden(text))


def stack(*widths: int, stride: int = 1, norm: bool = True) -> list[nn.Module]:
    """Convolutions; without a norm each image is by itself, so that a batch may be split or folded."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers.append(nn.Conv2d(before, after, 3, stride, 1, bias=not norm))
        layers += [nn.BatchNorm2d(after), nn.ReLU()] if norm else [nn.ReLU()]
    return layers


def pictures(on: Machine, count: int, side: int) -> torch.Tensor:
    return torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)


def to_device(model: nn.Module, on: Machine) -> Any:
    moved: Any = model
    return moved.to(on.device, memory_format=torch.channels_last)


def frozen(model: nn.Module) -> Any:
    return model.requires_grad_(False).eval()
