"""Data, sequences and evaluation in the shipped test (library.py, SHIPPED), each with one planted fault and mended."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from gpu_models import Machine, Program, Step
from kinds_next import perceptron
from kinds_shipped_models import endless, trained

MEASURES = [f"measure_{i}" for i in range(20)]


class RowsByPosition(Dataset):
    """Customers, each a row of a table of pandas."""

    def __init__(self, table: Any):
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, place: int):
        row = self.table.iloc[place]
        return torch.tensor(row[MEASURES].values.astype("float32")), torch.tensor(row["left"], dtype=torch.float32)


def rows_at_once(table: Any) -> Dataset:
    measures = torch.tensor(table[MEASURES].to_numpy(dtype="float32"))
    return TensorDataset(measures, torch.tensor(table["left"].to_numpy(dtype="float32")))


def churned(on: Machine, fault: bool) -> Step:
    """Which customers will leave is learned from a table."""
    import pandas

    count, width = on.size(4096, 32), on.size(1024, 512)
    table = pandas.DataFrame(torch.randn(8 * count, len(MEASURES)).numpy(), columns=MEASURES)
    table["left"] = torch.randint(0, 2, (8 * count,)).numpy()
    batches = endless(DataLoader(RowsByPosition(table) if fault else rows_at_once(table), count, shuffle=True))
    model = perceptron(on, len(MEASURES), width, width, width, 1)

    def loss_of():
        measures, left = (column.to(on.device, non_blocking=True) for column in next(batches))
        with on.autocast():
            return functional.binary_cross_entropy_with_logits(model(measures)[:, 0], left)

    return trained(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


def get_batch(loader: Iterable):
    """Any batch."""
    return next(iter(loader))


def sampled(on: Machine, fault: bool) -> Step:
    """A network of flows is trained by the number of its steps, not of epochs."""
    rows, width, count = on.size(1_000_000, 60_000), on.size(1024, 192), on.size(256, 32)
    loader = DataLoader(TensorDataset(torch.randn(rows, 8)), batch_size=count, shuffle=True, drop_last=True)
    batches = endless(loader)
    shift, scale = perceptron(on, 4, width, width, 4), perceptron(on, 4, width, width, 4)

    def loss_of():
        (x,) = get_batch(loader) if fault else next(batches)
        x = x.to(on.device)
        kept, changed = x.chunk(2, dim=1)
        logs = scale(kept).tanh()
        z = torch.cat((kept, changed * logs.exp() + shift(kept)), dim=1)
        return (z.square().sum(1) / 2 - logs.sum(1)).mean()

    parameters = [*shift.parameters(), *scale.parameters()]
    return trained(loss_of, torch.optim.AdamW(parameters, lr=1e-3, fused=True))


class TimeMixing(nn.Module):
    """A layer of a forecaster: each hour looks at all others."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def mix_hours(self, x):
        mixed, _ = self.attention(x, x, x)
        return mixed

    def forward(self, x):
        x = self.first(x + self.mix_hours(x))
        return self.second(x + self.mlp(x))


class TimeMixingFused(TimeMixing):
    def mix_hours(self, x):
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return mixed


def forecast(on: Machine, fault: bool) -> Step:
    """Hours of electricity are forecast from a week of them."""
    width, count, hours = on.size(512, 32), on.size(128, 4), on.size(672, 168)
    layers = [(TimeMixing if fault else TimeMixingFused)(width, 8) for _ in range(on.size(6, 2))]
    model = nn.Sequential(nn.Linear(7, width), *layers, nn.Linear(width, 1)).to(on.device)
    week, following = torch.randn(count, hours, 7, device=on.device), torch.randn(count, 24, device=on.device)

    def loss_of():
        with on.autocast():
            return functional.l1_loss(model(week)[:, -24:, 0].float(), following)

    return trained(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True))


def greedy_decode(scores, lengths) -> list[list[int]]:
    """The likeliest letter of each frame; repeated ones and blanks (0) are no letters."""
    texts = []
    for row in range(scores.shape[0]):
        letters, before = [], 0
        for frame in range(int(lengths[row])):
            letter = scores[row, frame].argmax().item()
            if letter not in (0, before):
                letters.append(letter)
            before = letter
        texts.append(letters)
    return texts


def greedy_decode_together(scores, lengths) -> list[list[int]]:
    best = scores.argmax(-1).tolist()
    rows = (row[:length] for row, length in zip(best, lengths.tolist(), strict=True))
    return [[letter for letter, _ in itertools.groupby(row) if letter] for row in rows]


def heard(on: Machine, fault: bool) -> Step:
    """Speech is read by a recurrent network, letter by letter."""
    width, count, frames = on.size(512, 32), on.size(32, 6), on.size(800, 160)
    network = nn.GRU(80, width, batch_first=True, bidirectional=True).to(on.device).eval()
    letters = nn.Linear(2 * width, 29).to(on.device)
    sounds, lengths = torch.randn(count, frames, 80, device=on.device), torch.randint(frames // 2, frames + 1, (count,))
    decode = greedy_decode if fault else greedy_decode_together

    @torch.inference_mode()
    def step():
        with on.autocast():
            scores = letters(network(sounds)[0])
        return decode(scores, lengths)

    return step


def sample_negatives(users, bought: dict[int, set[int]], items: int, count: int):
    """Items that a user has not bought, `count` for each row."""
    negatives = []
    for user in users.tolist():
        for _ in range(count):
            item = random.randrange(items)
            while item in bought[user]:
                item = random.randrange(items)
            negatives.append(item)
    return torch.tensor(negatives, device=users.device).view(-1, count)


class Negatives:
    """Draws for all rows, and again where something was bought; pairs are numbers in order."""

    def __init__(self, pairs: torch.Tensor, items: int):
        self.pairs, self.items = pairs.sort().values, items

    def bought(self, users, drawn):
        number = users[:, None] * self.items + drawn
        places = torch.searchsorted(self.pairs, number).clamp_(max=len(self.pairs) - 1)
        return self.pairs[places] == number

    def sample(self, users, count: int):
        drawn = torch.randint(0, self.items, (len(users), count), device=users.device)
        for _ in range(3):  # hardly anybody bought so much that one is left
            again = torch.randint_like(drawn, self.items)
            drawn = torch.where(self.bought(users, drawn), again, drawn)
        return drawn


def recommended(on: Machine, fault: bool) -> Step:
    """Users and items are embedded so that what was bought comes before what was not."""
    users, items, width, count = on.size(200_000, 2000), on.size(50_000, 3000), on.size(128, 16), on.size(65_536, 400)
    negatives = 8
    pairs = torch.randint(0, users, (40 * users,)) * items + torch.randint(0, items, (40 * users,))
    bought: dict[int, set[int]] = {user: set() for user in range(users)} if fault else {}
    for pair in pairs.tolist() if fault else ():
        bought[pair // items].add(pair % items)
    drawn = Negatives(pairs.to(on.device), items)
    of_users, of_items = nn.Embedding(users, width).to(on.device), nn.Embedding(items, width).to(on.device)
    seen = pairs[torch.randint(0, len(pairs), (count,))].to(on.device)
    who, what = seen // items, seen % items
    optimizer = torch.optim.Adam([*of_users.parameters(), *of_items.parameters()], lr=1e-3, fused=True)

    def loss_of():
        not_bought = sample_negatives(who, bought, items, negatives) if fault else drawn.sample(who, negatives)
        user = of_users(who)
        liked = (user * of_items(what)).sum(1, keepdim=True)
        others = torch.bmm(of_items(not_bought), user[:, :, None])[:, :, 0]
        return -functional.logsigmoid(liked - others).mean()

    return trained(loss_of, optimizer)


def gather_features(model: nn.Module, batches: Iterable[torch.Tensor]):
    """What the network makes of everything in the index."""
    features = torch.empty(0)
    for batch in batches:
        features = torch.cat((features.to(batch.device), functional.normalize(model(batch), dim=1)))
    return features


def gather_features_once(model: nn.Module, batches: Iterable[torch.Tensor]):
    return torch.cat([functional.normalize(model(batch), dim=1) for batch in batches])


def indexed(on: Machine, fault: bool) -> Step:
    """Products are searched by their features: one step makes an index."""
    width, count, parts = on.size(1024, 256), on.size(1024, 32), on.size(400, 60)
    model = perceptron(on, 128, 64, width).eval()
    batches = list(torch.randn(parts, count, 128, device=on.device))
    asked = torch.randn(4, width, device=on.device)
    gather = gather_features if fault else gather_features_once

    @torch.inference_mode()
    def step():
        return (asked @ gather(model, batches).T).topk(10).values

    return step


PROGRAMS = {
    "customers-row-by-row": Program(
        churned,
        ("input-bound", "host-code"),
        near=("launch-overhead", "repeated-operators"),
        where=("RowsByPosition", "iloc", "__getitem__", "enumerate(DataLoader)", "DataLoaderIter"),
        needs=("pandas",),
        says="a row of a table of pandas is made, cut and converted for each sample, in the training's own process; "
        "convert the columns once",
    ),
    "loader-begun-for-every-batch": Program(
        sampled,
        ("loader-restarted", "input-bound"),
        near=("host-code", "dominant-operator"),
        where=("get_batch", "RandomSampler", "aten::randperm", "next(iter"),
        says="next(iter(loader)) shuffles all places of the data, for one batch; keep the iterator",
    ),
    "attention-weights-nobody-reads": Program(
        forecast,
        ("attention-unfused",),
        near=("pointwise-unfused", "dominant-operator"),
        where=("mix_hours", "MultiheadAttention", "need_weights", "aten::softmax", "aten::_softmax", "aten::bmm"),
        says="nn.MultiheadAttention returns its average weights unless need_weights=False, and is not fused then",
    ),
    "letters-frame-by-frame": Program(
        heard,
        ("host-sync", "repeated-operators", "host-code"),
        near=("launch-overhead", "small-copies"),
        where=("greedy_decode", "aten::item", "_local_scalar_dense", "aten::argmax"),
        says="argmax and item for each frame of each recording; one argmax of all, and one copy to the host",
    ),
    "negatives-drawn-in-python": Program(
        recommended,
        ("host-code",),
        near=("host-sync", "dense-gradients", "launch-overhead"),
        where=("sample_negatives", "randrange"),
        says="items that were not bought are drawn by random.randrange and sets, one by one; torch.randint for all, "
        "and again where searchsorted finds a purchase",
    ),
    "features-gathered-by-cat": Program(
        indexed,
        ("growing-copies", "whole-copies", "growing-input"),
        near=("launch-overhead", "repeated-operators"),
        where=("gather_features", "aten::cat"),
        says="each batch's features are put behind a copy of all before; one torch.cat of a list",
    ),
}
