"""Language programs of the merged test (library.py, MERGED), each with one planted fault and mended."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Language

LOWEST = float("-inf")


class Writer(nn.Module):
    """A recurrent network that writes word after word."""

    def __init__(self, words: int, width: int, depth: int):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.reads = nn.GRU(width, width, depth, batch_first=True)

    def forward(self, last, state=None):
        y, state = self.reads(self.embed(last)[:, None], state)
        return self.head(y[:, 0]).float(), state


def banned_through_lists(scores, text, size: int):
    """No `size` words in a row may come twice: forbids what would repeat, from a dictionary of all that was written."""
    for row, words in enumerate(text.tolist()):
        followers: dict[tuple[int, ...], list[int]] = {}
        for begin in range(len(words) - size + 1):
            followers.setdefault(tuple(words[begin : begin + size - 1]), []).append(words[begin + size - 1])
        found = followers.get(tuple(words[len(words) - size + 1 :]))
        if found:
            scores[row, found] = LOWEST
    return scores


def banned_by_windows(scores, text, size: int):
    windows = text.unfold(1, size, 1)
    repeats = (windows[..., :-1] == text[:, None, text.shape[1] - size + 1 :]).all(-1)
    last = torch.where(repeats, windows[..., -1], scores.shape[1])
    banned = scores.new_zeros(len(scores), scores.shape[1] + 1, dtype=torch.bool).scatter_(1, last, True)
    return scores.masked_fill(banned[:, :-1], LOWEST)


def summaries(on: Machine, fault: bool) -> Step:
    """Four more words of each summary, in which no three words in a row may come twice."""
    words, count, length = on.size(32_000, 2000), on.size(24, 8), on.size(512, 256)
    model = Writer(words, on.size(1536, 64), on.size(3, 1)).to(on.device, on.half).eval()
    text = torch.randint(0, 20, (count, length + 4), device=on.device)
    banned = banned_through_lists if fault else banned_by_windows

    @torch.inference_mode()
    def step():
        state = None
        for place in range(length, length + 4):
            scores, state = model(text[:, place - 1], state)
            text[:, place] = banned(scores, text[:, :place], 3).argmax(1)

    return step


class Grammar:
    """What may be written in each of some states; states follow each other."""

    def __init__(self, on: Machine, words: int, states: int):
        kept = torch.rand(states, words) < 0.15
        self.allowed: list[list[int]] = [row.nonzero()[:, 0].tolist() for row in kept]
        self.banned = ~kept.to(on.device)

    def through_lists(self, scores, states: list[int]):
        mask = torch.full_like(scores, LOWEST)
        for row, state in enumerate(states):
            mask[row, self.allowed[state]] = 0
        return scores + mask

    def by_table(self, scores, states):
        return scores.masked_fill(self.banned.index_select(0, states), LOWEST)


def structured(on: Machine, fault: bool) -> Step:
    """Six words of answers that must follow a grammar."""
    words, count, states = on.size(32_000, 4000), on.size(16, 12), 8
    model = Writer(words, on.size(1536, 64), on.size(3, 1)).to(on.device, on.half).eval()
    grammar = Grammar(on, words, states)
    first = torch.randint(0, words, (count,), device=on.device)
    begin = torch.arange(count, device=on.device)

    @torch.inference_mode()
    def step():
        last, state = first, None
        for place in range(6):
            scores, state = model(last, state)
            if fault:
                scores = grammar.through_lists(scores, [(row + place) % states for row in range(count)])
            else:
                scores = grammar.by_table(scores, (begin + place) % states)
            last = scores.argmax(1)
        return last

    return step


def loss_by_shifting_scores(scores, text):
    """Each place is asked for the next word; the last place has none."""
    kept = scores[:, :-1].contiguous()
    return functional.cross_entropy(kept.view(-1, kept.shape[-1]), text[:, 1:].reshape(-1))


def loss_by_shifting_labels(scores, text):
    labels = functional.pad(text[:, 1:], (0, 1), value=-100)
    return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


def pretrained(on: Machine, fault: bool) -> Step:
    """A small decoder with a large vocabulary is trained."""
    words, length, width = on.size(50_000, 20_000), on.size(2048, 64), on.size(768, 16)
    model = Language(words, length, width, on.size(12, 2), 1).to(on.device)
    text = torch.randint(0, words, (on.size(8, 4), length), device=on.device)
    loss = loss_by_shifting_scores if fault else loss_by_shifting_labels

    def loss_of():
        with on.autocast():
            scores = model(text)
        return loss(scores.float(), text)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def angles(places, size: int):
    """Cosines and sines that turn queries and keys by their places."""
    rates = 10_000.0 ** (-torch.arange(0, size, 2, device=places.device).float() / size)
    turns = places[:, :, None].float() * rates
    both = torch.cat((turns, turns), dim=-1)[:, None]
    return both.cos(), both.sin()


def turned(x, cosines, sines):
    a, b = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-b, a), dim=-1) * sines


class Turning(nn.Module):
    """A layer of a decoder with rotary places."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, places, known):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        found = angles(places, q.shape[-1]) if known is None else known
        cosines, sines = (each.to(x.dtype) for each in found)
        y = functional.scaled_dot_product_attention(turned(q, cosines, sines), turned(k, cosines, sines), v)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def embedded(on: Machine, fault: bool) -> Step:
    """Short questions are encoded: the angles of their places are computed by every layer, or once for all."""
    width, length, heads = on.size(768, 48), on.size(48, 64), on.size(12, 2)
    layers = nn.ModuleList(Turning(width, heads) for _ in range(on.size(20, 10))).to(on.device, on.half).eval()
    questions = torch.randn(on.size(8, 2), length, width, device=on.device, dtype=on.half)
    places = torch.arange(length, device=on.device).expand(len(questions), -1)

    @torch.inference_mode()
    def step():
        x, known = questions, None if fault else angles(places, width // heads)
        for layer in layers:
            x = layer(x, places, known)
        return x.mean(1)

    return step


class Packed(IterableDataset):
    """Cuts endless text into pieces of one length: from the front of a long list, or from a stream of words."""

    def __init__(self, words: int, ahead: int, length: int, slices: bool):
        self.ahead, self.length, self.slices = ahead, length, slices
        self.text: list[int] = torch.randint(0, words, (8191,)).tolist()

    def pieces_of_list(self, words: Iterator[int]) -> Iterator[list[int]]:
        waiting = list(itertools.islice(words, self.ahead))
        while True:
            piece, waiting = waiting[: self.length], waiting[self.length :]
            waiting.extend(itertools.islice(words, self.length))
            yield piece

    def pieces_of_stream(self, words: Iterator[int]) -> Iterator[list[int]]:
        while True:
            yield list(itertools.islice(words, self.length))

    def __iter__(self):
        words = itertools.cycle(self.text)
        return map(torch.tensor, self.pieces_of_list(words) if self.slices else self.pieces_of_stream(words))


def packing(on: Machine, fault: bool) -> Step:
    """A decoder is trained on pieces of text that the loader cuts to one length."""
    words, width, length = on.size(16_000, 256), on.size(1024, 48), on.size(513, 65)
    model = Language(words, length, width, on.size(16, 2), on.size(4, 2)).to(on.device)
    pieces = Packed(words, on.size(400_000, 250_000), length, slices=fault)
    batches = iter(DataLoader(pieces, batch_size=on.size(8, 4)))

    def loss_of():
        text = next(batches).to(on.device)
        with on.autocast():
            scores = model(text[:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1).float(), text[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "repeats-banned-through-lists": Program(
        summaries,
        ("host-code",),
        near=("host-sync", "launch-overhead", "exposed-copies", "pageable-copies", "growing-input"),
        where=("banned_through_lists", "Memcpy DtoH", "memcpy D2H"),
        says="for every word all texts go to the host as lists, where Python collects what was written; compare all "
        "windows with the last words on the device",
    ),
    "allowed-words-as-lists": Program(
        structured,
        ("constant-copies",),
        near=(
            "pageable-copies",
            "small-copies",
            "host-compute",
            "host-code",
            "host-sync",
            "launch-overhead",
            "repeated-operators",
        ),
        where=("aten::index_put_", "through_lists"),
        says="the words that a grammar allows are Python lists, which become tensors for every text and word; keep a "
        "table of all states on the device",
    ),
    "scores-shifted-by-a-copy": Program(
        pretrained,
        ("whole-copies", "layout-copies"),
        near=("pointwise-unfused", "memory-spike", "dtype-ping-pong", "dominant-operator"),
        where=("aten::contiguous", "aten::clone", "aten::slice_backward", "SliceBackward"),
        says="the scores of the vocabulary are copied without their last place, and their gradient is padded; shift "
        "the labels instead",
    ),
    "angles-computed-in-every-layer": Program(
        embedded,
        ("repeated-inputs", "constant-work"),
        near=("launch-overhead", "pointwise-unfused", "repeated-operators"),
        where=("aten::cos", "aten::sin"),
        says="every layer computes the same cosines and sines of the places; once for all layers",
    ),
    "packing-slices-a-long-list": Program(
        packing,
        ("input-bound",),
        near=("host-code", "slow-steps"),
        where=("DataLoader", "pieces_of_list"),
        says="the loader cuts each piece off the front of a long Python list, which copies all the rest; read on from "
        "a position, or from a stream",
    ),
}
