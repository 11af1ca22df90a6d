"""A fifth blind test (library.py, NEXT): eleven programs with a fault and one without, for a GPU and a CPU.

Of kinds that no program before had: clouds of points, captions, tables of numbers, speech that is resampled, a frozen
body that still builds a graph, text in a loader, an optimizer for each layer, norms by hand, metrics by class, a queue
of old keys, a mixture of losses with a gate. Faults were declared and committed before any of these was recorded.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpu_models import Machine, Program, Step, training


def perceptron(on: Machine, *widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.GELU()]
    return nn.Sequential(*layers[:-1]).to(on.device)


def clouds(on: Machine, fault: bool) -> Step:
    """The nearest neighbours of each cloud of points, cloud by cloud or of all at once."""
    points = torch.randn(on.size(32, 16), on.size(512, 48), 3, device=on.device)
    width = on.size(256, 32)
    model = perceptron(on, 3, width, width)

    def neighbours():
        if not fault:
            return torch.cdist(points, points).topk(8, dim=-1, largest=False).indices
        found = []
        for cloud in points:
            distances = (cloud[:, None] - cloud[None]).square().sum(-1)
            found.append(distances.topk(8, dim=-1, largest=False).indices)
        return torch.stack(found)

    def loss_of():
        near = neighbours()
        rows = torch.arange(len(points), device=on.device)[:, None, None]
        return model(points[rows, near] - points[:, :, None]).amax(2).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Speaker(nn.Module):
    def __init__(self, words: int, width: int):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(words, width), nn.GRUCell(width, width), nn.Linear(width, words)

    def forward(self, word, state):
        state = self.cell(self.embed(word), state)
        return self.out(state), state


def captions(on: Machine, fault: bool) -> Step:
    """The best word of each caption is looked for by the CPU, which has to be sent all scores."""
    words, width, count = on.size(16384, 512), on.size(512, 64), on.size(128, 16)
    model = Speaker(words, width).to(on.device).eval()

    @torch.no_grad()
    def step():
        word = torch.zeros(count, dtype=torch.long, device=on.device)
        state = torch.zeros(count, width, device=on.device)
        for _ in range(16):
            scores, state = model(word, state)
            if fault:
                scores = scores.cpu()
            word = torch.softmax(scores, -1).topk(4).indices[:, 0].to(on.device)
        return word

    return step


def tables(on: Machine, fault: bool) -> Step:
    """Statistics of the columns are float64, and what is computed with them as well."""
    columns, width = on.size(2048, 256), on.size(1024, 128)
    rows = torch.randn(on.size(8192, 256), columns, device=on.device)
    kind = torch.float64 if fault else torch.float32
    mean, spread = rows.to(kind).mean(0), rows.to(kind).std(0)
    model = perceptron(on, columns, width, 1)

    def loss_of():
        scaled = ((rows - mean) / spread).clamp(-4, 4)
        scaled = torch.sign(scaled) * torch.log1p(scaled.abs())
        with on.autocast():
            return model(scaled.float()).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def resampled(on: Machine, fault: bool) -> Step:
    """The filter that resamples sound is the same in every step, and made in every step by the CPU."""
    taps, length, width = on.size(4096, 512), on.size(16000, 1000), on.size(128, 16)
    sounds = torch.randn(on.size(16, 4), 1, length, device=on.device)
    model = nn.Sequential(
        nn.Conv1d(1, width, 16, 4), nn.ReLU(), nn.Conv1d(width, width, 8, 4), nn.ReLU(), nn.AdaptiveAvgPool1d(1)
    ).to(on.device)

    def filters():
        at = torch.arange(-taps // 2, taps // 2, dtype=torch.float32)[None] / 8 + torch.linspace(0, 1, 32)[:, None]
        window = torch.cos(at * math.pi / taps).square()
        return (torch.sinc(at) * window)[:, None, ::16].contiguous().to(on.device)

    kept = filters()

    def loss_of():
        heard = functional.conv1d(sounds, filters() if fault else kept, stride=8)
        return model(heard.mean(1, keepdim=True)).square().mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def frozen_body(on: Machine, fault: bool) -> Step:
    """Only a head is trained; the body before it is in no optimizer, and its gradients are computed all the same."""
    width, count = on.size(1536, 128), on.size(4096, 192)
    body = perceptron(on, *[width] * 9)
    head = nn.Linear(width, 10).to(on.device)
    if not fault:
        body.requires_grad_(False)
    data = torch.randn(count, width, device=on.device)
    labels = torch.randint(0, 10, (count,), device=on.device)

    def loss_of():
        body.zero_grad(set_to_none=True)
        with on.autocast():
            return functional.cross_entropy(head(body(data)), labels)

    return training(loss_of, torch.optim.AdamW(head.parameters(), lr=1e-3, fused=True))


class Sentences(Dataset):
    """Text that becomes numbers character by character, where it is asked for or before."""

    def __init__(self, count: int, length: int, ready: bool):
        letters = [chr(97 + (i * i + 7) % 26) for i in range(count * length)]
        self.texts = ["".join(letters[i * length : (i + 1) * length]) for i in range(count)]
        self.ready = [self.numbers(text) for text in self.texts] if ready else None

    def __len__(self) -> int:
        return len(self.texts)

    @staticmethod
    def numbers(text: str) -> torch.Tensor:
        return torch.tensor([ord(letter) - 97 for letter in text])

    def __getitem__(self, which: int) -> torch.Tensor:
        return self.numbers(self.texts[which]) if self.ready is None else self.ready[which]


def sentences(on: Machine, fault: bool) -> Step:
    length, batch, width = on.size(512, 128), on.size(64, 16), on.size(512, 64)
    loader = DataLoader(Sentences(on.size(1024, 128), length, not fault), batch_size=batch, shuffle=True)
    model = nn.Sequential(nn.Embedding(26, width), *perceptron(on, width, 2 * width, width, 26)).to(on.device)
    batches: Any = iter(())

    def following():
        nonlocal batches
        found = next(batches, None)
        if found is None:
            batches = iter(loader)
            found = next(batches)
        return found

    def loss_of():
        text = following().to(on.device)
        with on.autocast():
            scores = model(text[:, :-1])
            return functional.cross_entropy(scores.flatten(0, 1).float(), text[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def optimizers(on: Machine, fault: bool) -> Step:
    """Each layer has an optimizer of its own, which steps by itself."""
    width, depth = on.size(512, 32), on.size(48, 24)
    model = perceptron(on, *[width] * (depth + 1))
    data = torch.randn(on.size(512, 32), width, device=on.device)
    parts = [layer for layer in model if list(layer.parameters())] if fault else [model]
    all_of_them = [torch.optim.AdamW(part.parameters(), lr=1e-4, foreach=True) for part in parts]

    def step():
        for each in all_of_them:
            each.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        for each in all_of_them:
            each.step()

    return step


class NormByHand(nn.Module):
    def __init__(self, width: int, by_hand: bool):
        super().__init__()
        self.weight, self.by_hand = nn.Parameter(torch.ones(width)), by_hand
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        if self.by_hand:
            wide = x.float()
            seen = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight
        else:
            seen = functional.rms_norm(x, x.shape[-1:], self.weight, 1e-6)
        return x + self.down(functional.silu(self.up(seen)))


def norms(on: Machine, fault: bool) -> Step:
    width, depth = on.size(1024, 64), on.size(12, 4)
    model = nn.Sequential(*[NormByHand(width, fault) for _ in range(depth)]).to(on.device, on.half)
    data = torch.randn(on.size(16384, 256), width, device=on.device, dtype=on.half)
    return training(
        lambda: model(data).float().square().mean(), torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    )


def by_class(on: Machine, fault: bool) -> Step:
    """How often each class was right is read class by class; or all numbers at once."""
    classes, width = on.size(64, 32), on.size(1024, 64)
    model = perceptron(on, width, 2 * width, classes)
    data = torch.randn(on.size(8192, 128), width, device=on.device)
    labels = torch.randint(0, classes, (len(data),), device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rates: list[float] = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            scores = model(data)
            loss = functional.cross_entropy(scores.float(), labels)
        loss.backward()
        optimizer.step()
        right = scores.argmax(-1) == labels
        if fault:
            rates[:] = [(right & (labels == each)).sum().item() for each in range(classes)]
        else:
            rates[:] = torch.bincount(labels[right], minlength=classes).tolist()

    return step


def queue_of_keys(on: Machine, fault: bool) -> Step:
    """Old keys to compare with: all are copied to put the new ones before them, or the oldest are written over."""
    width, count, kept = on.size(1024, 64), on.size(512, 64), on.size(131072, 8192)
    model = perceptron(on, width, width, width)
    data = torch.randn(count, width, device=on.device)
    keys = functional.normalize(torch.randn(kept, width, device=on.device, dtype=on.half), dim=-1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    at = 0

    def step():
        nonlocal keys, at
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            seen = functional.normalize(model(data), dim=-1).to(on.half)
            loss = torch.logsumexp((seen[:64] @ keys.T).float() / 0.07, dim=-1).mean()
        loss.backward()
        optimizer.step()
        if fault:
            keys = torch.cat((seen.detach(), keys))[:kept]
        else:
            keys[at : at + count].copy_(seen.detach())
            at = (at + count) % kept

    return step


def gated_losses(on: Machine, fault: bool) -> Step:
    """Each of several losses goes back through the shared trunk by itself; the sum of all goes back once."""
    width, tasks = on.size(1024, 64), 6
    trunk = perceptron(on, *[width] * 5)
    heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(tasks)).to(on.device)
    gate = nn.Parameter(torch.zeros(tasks, device=on.device))
    data = torch.randn(on.size(4096, 64), width, device=on.device)
    optimizer = torch.optim.AdamW([*trunk.parameters(), *heads.parameters(), gate], lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            seen = trunk(data)
            losses = [head(seen).float().square().mean() for head in heads]
        shares = torch.softmax(gate, 0)
        if fault:
            for i in range(tasks):
                (losses[i] * shares[i]).backward(retain_graph=True)
        else:
            (torch.stack(losses) * shares).sum().backward()
        optimizer.step()

    return step


def ranked(on: Machine) -> Step:
    """A two-tower ranker over a large batch, in bf16, with everything on the device."""
    width = on.size(2048, 256)
    left, right = perceptron(on, width, width, width), perceptron(on, width, width, width)
    pairs = torch.randn(2, on.size(8192, 256), width, device=on.device)

    def loss_of():
        with on.autocast():
            scores = left(pairs[0]) @ right(pairs[1]).T / width
        return functional.cross_entropy(scores.float(), torch.arange(len(scores), device=on.device))

    return training(loss_of, torch.optim.AdamW([*left.parameters(), *right.parameters()], lr=1e-4, fused=True))


PROGRAMS = {
    "clouds-one-by-one": Program(
        clouds,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="neighbours are looked for in each cloud by itself; cdist and topk take all clouds at once",
    ),
    "captions-chosen-by-the-host": Program(
        captions,
        ("host-sync", "host-compute", "exposed-copies", "repeated-operators"),
        near=("launch-overhead", "pageable-copies"),
        says="all scores are copied to the CPU for every word, which softmax and topk on the device would choose",
    ),
    "tables-scaled-in-double": Program(
        tables,
        ("fp64-compute", "dtype-ping-pong"),
        near=("pointwise-unfused",),
        says="statistics in float64 make all that is computed with them float64",
    ),
    "filter-made-in-every-step": Program(
        resampled,
        ("constant-copies", "host-compute", "constant-work"),
        near=("launch-overhead", "pageable-copies", "host-sync", "dominant-operator"),
        says="the CPU makes the same filter in every step and copies it to the device",
    ),
    "body-in-no-optimizer": Program(
        frozen_body, ("unused-gradients",), says="gradients of the body are computed and thrown away"
    ),
    "text-numbered-in-the-loader": Program(
        sentences,
        ("input-bound",),
        near=("host-code", "host-compute"),
        says="the loader turns letters into numbers in Python, in the training process",
    ),
    "optimizer-for-each-layer": Program(
        optimizers,
        ("many-optimizers", "repeated-operators", "single-tensor-optimizer"),
        near=("launch-overhead",),
        says="48 optimizers step one after the other; one with all parameters updates them together",
    ),
    "norms-by-hand": Program(
        norms,
        ("pointwise-unfused", "dtype-ping-pong"),
        near=("launch-overhead",),
        says="RMS norms are written out, with casts to float32 and back; rms_norm is one kernel each way",
    ),
    "rates-class-by-class": Program(
        by_class,
        ("host-sync", "repeated-operators"),
        near=("launch-overhead",),
        says="a number is read from the device for each class; one histogram has all",
    ),
    "keys-copied-to-add-some": Program(
        queue_of_keys,
        ("growing-input", "whole-copies", "dominant-operator"),
        near=("pointwise-unfused",),
        says="the whole queue is copied in every step to put new keys in front",
    ),
    "losses-each-by-itself": Program(
        gated_losses,
        ("repeated-backward", "repeated-operators"),
        near=("launch-overhead",),
        says="the backward pass of the trunk runs for each loss; once for their sum does the same",
    ),
    "healthy-ranker": Program(
        lambda on, _: ranked(on), (), says="large products in bf16: nothing that a setting would change"
    ),
}

# There the scores, the filter and the numbers are on the host in any case.
ON_GPU_ONLY = {"captions-chosen-by-the-host", "filter-made-in-every-step", "rates-class-by-class"}
