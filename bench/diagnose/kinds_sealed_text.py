"""Programs on text of the sealed test (library.py, SEALED), each with one planted fault and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gpu_models import Machine, Program, Step, training
from kinds_next import perceptron
from kinds_sealed_models import Attention, Layer


class MaskedAttention(Attention):
    def __init__(self, width: int, heads: int, mask: torch.Tensor):
        super().__init__(width, heads)
        self.register_buffer("mask", mask)

    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)


class FoldedAttention(Attention):
    """Each document of a row is a row of its own while it attends."""

    def __init__(self, width: int, heads: int, documents: int):
        super().__init__(width, heads, causal=True)
        self.documents = documents

    def forward(self, x):
        rows, length, width = x.shape
        return super().forward(x.view(rows * self.documents, -1, width)).view(rows, length, width)


def packed(on: Machine, fault: bool) -> Step:
    """Short documents packed into long rows: kept apart by a mask of the whole row; or by attending for themselves."""
    width, heads, documents, each = on.size(1024, 32), on.size(16, 2), 16, on.size(256, 16)
    place = torch.arange(documents * each, device=on.device)
    mask = (place[:, None] // each == place[None] // each) & (place[:, None] >= place[None])

    def attention() -> nn.Module:
        return MaskedAttention(width, heads, mask) if fault else FoldedAttention(width, heads, documents)

    model = nn.Sequential(*[Layer(width, attention()) for _ in range(on.size(3, 2))]).to(on.device)
    data = torch.randn(on.size(4, 2), documents * each, width, device=on.device)

    def loss_of():
        with on.autocast():
            return model(data).float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def chosen_of_all(scores: torch.Tensor) -> torch.Tensor:
    """Two filters in turn, as libraries have them: the 50 best words, then of these as many as make up 90%."""
    worst = scores.topk(50).values[:, -1:]
    scores = scores.masked_fill(scores < worst, float("-inf"))
    ordered, words = scores.sort(dim=-1, descending=True)
    shares = torch.softmax(ordered, -1)
    dropped = shares.cumsum(-1) - shares > 0.9
    scores = scores.masked_fill(dropped.scatter(1, words, dropped), float("-inf"))
    return torch.multinomial(torch.softmax(scores, -1), 1)


def chosen_of_best(scores: torch.Tensor) -> torch.Tensor:
    best, words = scores.topk(50)
    shares = torch.softmax(best, -1)
    shares = shares.masked_fill(shares.cumsum(-1) - shares > 0.9, 0)
    return words.gather(1, torch.multinomial(shares, 1))


def sampled(on: Machine, fault: bool) -> Step:
    """The next word is drawn after all words were sorted; or the fifty that are left."""
    words, width, count = on.size(131072, 2048), on.size(1024, 64), on.size(64, 4)
    embed = nn.Embedding(words, width).to(on.device, on.half)
    body = perceptron(on, width, 4 * width, width, 4 * width, width).to(on.half)
    choose = chosen_of_all if fault else chosen_of_best

    @torch.inference_mode()
    def step():
        state = torch.zeros(count, width, device=on.device, dtype=on.half)
        word = torch.zeros(count, 1, dtype=torch.long, device=on.device)
        for _ in range(8):
            state = 0.9 * state + body(state + embed(word[:, 0]))
            word = choose(functional.linear(state, embed.weight).float())
        return word

    return step


class GroupedAttention(nn.Module):
    """One new token for each row: few heads of keys in a cache, many that ask. `repeated`: keys are, for each asker."""

    def __init__(self, width: int, heads: int, groups: int, cache: torch.Tensor, repeated: bool):
        super().__init__()
        self.heads, self.groups, self.cache, self.repeated = heads, groups, cache, repeated
        size = width // heads
        self.q, self.kv, self.out = (
            nn.Linear(width, width),
            nn.Linear(width, 2 * groups * size),
            nn.Linear(width, width),
        )

    def forward(self, x, at: int):
        rows, _, width = x.shape
        self.cache[:, :, :, at] = self.kv(x).view(rows, 2, self.groups, -1).transpose(0, 1)
        keys, values = self.cache
        each = self.heads // self.groups
        if self.repeated:
            q = self.q(x).view(rows, self.heads, 1, -1)
            keys, values = keys.repeat_interleave(each, dim=1), values.repeat_interleave(each, dim=1)
        else:
            q = self.q(x).view(rows, self.groups, each, -1)
        return self.out(functional.scaled_dot_product_attention(q, keys, values).reshape(rows, 1, width))


class Decoder(nn.Module):
    def __init__(self, on: Machine, fault: bool):
        super().__init__()
        width, heads, groups, rows, length = 16 * on.size(128, 8), 16, 2, on.size(32, 4), on.size(4096, 256)
        shape = 2, rows, groups, length, width // heads
        self.layers = nn.ModuleList()
        for _ in range(on.size(8, 2)):
            cache = torch.randn(shape, device=on.device, dtype=on.half)
            self.layers.append(Layer(width, GroupedAttention(width, heads, groups, cache, fault)))
        self.data = torch.randn(rows, 1, width, device=on.device, dtype=on.half)
        self.last = length - 1

    def forward(self, round_of):
        x = self.data
        for layer in self.layers:
            x = x + layer.attention(layer.before(x), self.last - round_of)
            x = x + layer.mlp(layer.between(x))
        return x


def grouped(on: Machine, fault: bool) -> Step:
    """Keys and values of a long cache are copied for each head that asks; or asked by several heads where they are."""
    model = Decoder(on, fault).to(on.device, on.half).eval()

    @torch.inference_mode()
    def step():
        for token in range(4):
            said = model(token)
        return said

    return step


def smoothed_by_hand(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    classes = scores.shape[-1]
    wanted = functional.one_hot(labels, classes).float() * 0.9 + 0.1 / classes
    return -(wanted * torch.log_softmax(scores, -1)).sum(-1).mean()


def smoothed(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(scores, labels, label_smoothing=0.1)


def translated(on: Machine, fault: bool) -> Step:
    """Smoothed labels are written out as a share for every word; or left to cross_entropy."""
    width, words, count = on.size(1024, 64), on.size(32768, 2048), on.size(8192, 128)
    model = perceptron(on, width, 4 * width, width, 4 * width, width, words)
    data = torch.randn(count, width, device=on.device)
    labels = torch.randint(0, words, (count,), device=on.device)
    loss = smoothed_by_hand if fault else smoothed

    def loss_of():
        with on.autocast():
            scores = model(data)
        return loss(scores.float(), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def recomputed(on: Machine, fault: bool) -> Step:
    """All layers are computed a second time to save memory, of which there is plenty; or keep what they computed."""
    width, heads = on.size(1024, 64), on.size(16, 2)
    model = nn.ModuleList(Layer(width, Attention(width, heads, causal=True)) for _ in range(on.size(8, 4)))
    model = model.to(on.device)
    data = torch.randn(on.size(16, 4), on.size(512, 32), width, device=on.device)

    def loss_of():
        x = data
        with on.autocast():
            for layer in model:
                x = checkpoint(layer, x, use_reentrant=False) if fault else layer(x)
        return x.float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "packed-documents-behind-a-mask": Program(
        packed,
        ("attention-mask",),
        near=("attention-unfused", "dominant-operator"),
        says="a dense mask keeps documents of a row apart: attention computes what the mask throws away, and cannot "
        "use its fastest kernel",
    ),
    "sampling-sorts-all-words": Program(
        sampled,
        ("full-sort", "dominant-operator"),
        near=("repeated-operators", "pointwise-unfused", "launch-overhead"),
        says="the whole vocabulary is sorted for every token, though only the fifty best words may be drawn",
    ),
    "keys-repeated-for-every-head": Program(
        grouped,
        ("repeated-keys", "whole-copies", "dominant-operator", "layout-copies"),
        near=("repeated-operators", "pointwise-unfused"),
        says="the cache of keys and values is copied eightfold for grouped-query attention in every layer and token",
    ),
    "labels-smoothed-by-hand": Program(
        translated,
        ("pointwise-unfused", "dominant-operator"),
        near=("memory-spike", "dtype-ping-pong"),
        says="labels become a matrix as large as the scores; cross_entropy has label_smoothing",
    ),
    "decoder-recomputes-activations": Program(
        recomputed,
        ("recomputed-activations", "repeated-operators", "constant-work"),
        near=("dominant-operator",),
        says="activation checkpointing in all layers while most memory is free (no id names that: the nearest say that "
        "the same is computed twice)",
    ),
}
