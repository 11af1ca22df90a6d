"""Loops around small models that no rule has seen (library.py, UNSEEN), each with one planted fault and mended."""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from gpu_models import Machine, Program, Step, training

LONGEST, TOPICS, ITEMS = 32, 64, 4096


class Clicks(Dataset):
    """What a user looked at, what of it came next, and its topics: lists of numbers, as they come from a log."""

    def __init__(self):
        drawn = random.Random(0)
        self.seen = [[drawn.randrange(1, ITEMS) for _ in range(drawn.randint(3, 40))] for _ in range(2048)]
        self.topics = [[drawn.randrange(TOPICS) for _ in range(3)] for _ in range(2048)]

    def __len__(self):
        return 1 << 17

    def __getitem__(self, index):
        index %= len(self.seen)
        return {"seen": self.seen[index], "next": index % ITEMS, "topics": self.topics[index]}


def put_together(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    seen, masks, topics = [], [], []
    for sample in samples:
        ids = torch.tensor(sample["seen"][-LONGEST:])
        seen.append(functional.pad(ids, (0, LONGEST - len(ids))))
        masks.append(functional.pad(torch.ones(len(ids)), (0, LONGEST - len(ids))))
        topic = torch.zeros(TOPICS)
        topic[sample["topics"]] = 1.0
        topics.append(topic / topic.sum())
    following = torch.tensor([sample["next"] for sample in samples])
    return {"seen": torch.stack(seen), "mask": torch.stack(masks), "topics": torch.stack(topics), "next": following}


class ClickTables(Dataset):
    """The same, put together once; it is asked for whole batches."""

    def __init__(self):
        clicks = Clicks()
        self.tables = put_together([clicks[i] for i in range(len(clicks.seen))])

    def __len__(self):
        return 1 << 17

    def __getitem__(self, batch):
        rows = torch.tensor(batch) % len(self.tables["next"])
        return {name: table[rows] for name, table in self.tables.items()}


class Towers(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.items = nn.Embedding(ITEMS, width)
        self.user = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        self.item = nn.Sequential(nn.Linear(width + TOPICS, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, batch):
        user = (self.items(batch["seen"]) * batch["mask"][..., None]).sum(1) / batch["mask"].sum(1, keepdim=True)
        item = torch.cat((self.items(batch["next"]), batch["topics"]), dim=1)
        return functional.normalize(self.user(user), dim=1) @ functional.normalize(self.item(item), dim=1).t()


def retrieval(on: Machine, fault: bool) -> Step:
    size = on.size(256, 96)
    loader: DataLoader
    if fault:
        loader = DataLoader(Clicks(), batch_size=size, shuffle=True, collate_fn=put_together)
    else:
        tables = ClickTables()
        loader = DataLoader(tables, batch_size=None, sampler=BatchSampler(RandomSampler(tables), size, True))
    batches = iter(loader)
    model = Towers(on.size(256, 96)).to(on.device)
    same = torch.arange(size, device=on.device)

    def loss_of():
        batch = next(batches)
        if on.is_gpu:
            batch = {name: each.pin_memory() for name, each in batch.items()}
        scores = model({name: each.to(on.device, non_blocking=True) for name, each in batch.items()})
        return functional.cross_entropy(scores * 20, same)

    return training(loss_of, torch.optim.Adagrad(model.parameters(), lr=0.01, foreach=True))


class Crossing(nn.Module):
    """A deep and cross network for clicks."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.cross = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.deep = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU())
        self.out = nn.Linear(2 * width, 1)

    def forward(self, start):
        x = start
        for layer in self.cross:
            x = start * layer(x) + x
        return self.out(torch.cat((x, self.deep(start)), dim=1)).squeeze(1)


def area_in_python(scores: list[float], labels: list[float]) -> float:
    """The share of pairs in the right order."""
    positives = negatives = ordered = 0.0
    for _, label in sorted(zip(scores, labels, strict=True)):
        if label > 0.5:
            positives += 1
            ordered += negatives
        else:
            negatives += 1
    return ordered / max(1.0, positives * negatives)


def area_on_device(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    ordered = labels[scores.argsort()]
    below = (1 - ordered).cumsum(0)
    return (below * ordered).sum() / (ordered.sum() * (1 - ordered).sum()).clamp(min=1)


def click_metric(on: Machine, fault: bool) -> Step:
    width, rows = on.size(512, 32), on.size(16_384, 4096)
    model = Crossing(width, 3).to(on.device)
    data = torch.randn(rows, width, device=on.device)
    labels = (torch.rand(rows, device=on.device) < 0.2).float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    sums: list[Any] = [0.0]

    def step():
        optimizer.zero_grad()
        with on.autocast():
            scores = model(data)
        loss = functional.binary_cross_entropy_with_logits(scores.float(), labels)
        loss.backward()
        optimizer.step()
        scores = scores.detach().float()
        if fault:
            sums[0] += area_in_python(scores.cpu().tolist(), labels.cpu().tolist())
        else:
            sums[0] += area_on_device(scores, labels)

    return step


class Dilated(nn.Module):
    """A forecaster of many series: dilated convolutions over time with gates."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Conv1d(width, 2 * width, 2, dilation=2**i, padding=2**i) for i in range(layers)]
        )
        self.out = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + functional.glu(layer(x)[..., : x.shape[-1]], dim=1)
        return self.out(x)


def forecast(on: Machine, fault: bool) -> Step:
    """Weights and the optimizer's state are written to a file in one step of eight."""
    width = on.size(512, 192)
    model = Dilated(width, on.size(6, 4)).to(on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    series = torch.randn(on.size(32, 2), width, on.size(256, 48), device=on.device)
    file = tempfile.NamedTemporaryFile(suffix=".pt")  # noqa: SIM115 (closed with the step function)
    count = 0

    def step():
        nonlocal count
        count += 1
        optimizer.zero_grad()
        with on.autocast():
            loss = (model(series[..., :-1]) - series[:, :1, 1:]).abs().mean()
        loss.backward()
        optimizer.step()
        if fault and count % 8 == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": count}, file.name)

    return step


def tabular(on: Machine, fault: bool) -> Step:
    """Rows of twelve categories, made into zeros and ones by Python; mended by one scatter of the numbers."""
    sizes = [2, 3, 5, 7, 7, 12, 20, 24, 31, 40, 52, 60]
    drawn, total = random.Random(0), sum(sizes)
    rows = [[drawn.randrange(size) for size in sizes] for _ in range(on.size(512, 256))]
    begins = [sum(sizes[:i]) for i in range(len(sizes))]
    ids = (torch.tensor(rows) + torch.tensor(begins)).to(on.device)
    prices = torch.randn(len(rows), device=on.device)
    width = on.size(1024, 192)
    model = nn.Sequential(
        nn.Linear(total, width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
    ).to(on.device)

    def encoded():
        vectors = []
        for row in rows:
            vector = [0.0] * total
            for begin, category in zip(begins, row, strict=True):
                vector[begin + category] = 1.0
            vectors.append(vector)
        return torch.tensor(vectors, device=on.device)

    def loss_of():
        x = encoded() if fault else torch.zeros(len(ids), total, device=on.device).scatter_(1, ids, 1.0)
        return functional.huber_loss(model(x).squeeze(1), prices)

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True))


class Patches(nn.Module):
    """A ConvMixer's block."""

    def __init__(self, width: int):
        super().__init__()
        self.near = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, groups=width // 16), nn.GELU(), nn.GroupNorm(8, width)
        )
        self.all = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.GroupNorm(8, width))

    def forward(self, x):
        return self.all(x + self.near(x))


class Timer:
    """Adds up the seconds of named parts of a step; the device is waited for at both ends of each."""

    def __init__(self, on: Machine, enabled: bool):
        self.on, self.enabled, self.seconds = on, enabled, dict[str, float]()

    @contextlib.contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        if not self.enabled:
            yield
            return
        self.on.synchronize()
        start = time.perf_counter()
        yield
        self.on.synchronize()
        self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - start


def timed_parts(on: Machine, fault: bool) -> Step:
    """Every block, the backward pass and the update are timed by a helper that waits for the device; mended without."""
    width, side = on.size(256, 32), on.size(128, 16)
    enter, head = nn.Conv2d(3, width, 4, 4), nn.Linear(width, 100)
    model: Any = nn.ModuleList([enter, *[Patches(width) for _ in range(on.size(12, 2))], head])
    model = model.to(on.device, memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, foreach=True)
    images = torch.randn(on.size(24, 2), 3, side, side, device=on.device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 100, (len(images),), device=on.device)
    timer = Timer(on, fault)

    def step():
        with on.autocast():
            x = enter(images)
            for i, block in enumerate(model[1:-1]):
                with timer(f"block {i}"):
                    x = block(x)
            with timer("loss"):
                loss = functional.cross_entropy(head(x.mean((2, 3))), labels)
        with timer("backward"):
            loss.backward()
        with timer("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


PROGRAMS = {
    "two-tower-collate": Program(
        retrieval,
        ("input-bound",),
        near=("host-compute", "host-code", "repeated-operators"),
        says="the batch is put together sample by sample inside the loop: workers, or tables indexed by batch",
    ),
    "click-metric-in-python": Program(
        click_metric,
        ("host-code",),
        near=("host-sync",),
        says="a metric is sorted and counted in Python on lists in every step: on the device, or every N steps",
    ),
    "forecast-saves-often": Program(
        forecast,
        ("slow-steps", "host-code"),
        near=("host-sync",),
        block=8,
        recorded=8,
        says="a checkpoint is written by the training thread in one step of eight: rarer, or in another thread",
    ),
    "tabular-one-hot-in-python": Program(
        tabular,
        ("host-code", "host-compute"),
        near=("input-bound", "pageable-copies"),
        says="Python lists of zeros and ones become the batch: copy the numbers and scatter, or an embedding",
    ),
    "timer-synchronizes": Program(
        timed_parts,
        ("host-sync",),
        near=("launch-overhead",),
        says="torch.cuda.synchronize() around each block, for timing: leave it out, or use events",
    ),
}
