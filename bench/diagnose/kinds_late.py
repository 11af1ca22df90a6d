"""A third blind test (library.py, LATE): written after the rules that the second one led to.

Faults were declared and committed before any of these was recorded.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from gpu_models import Machine, Program, Step, training


class HeadsInTurn(nn.Module):
    """Attention, one head after another in Python or all at once."""

    def __init__(self, width: int, heads: int, in_turn: bool):
        super().__init__()
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm, self.heads, self.in_turn = nn.LayerNorm(width), heads, in_turn

    def forward(self, x):
        q, k, v = self.project(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.in_turn:
            each = [functional.scaled_dot_product_attention(q[:, i], k[:, i], v[:, i]) for i in range(self.heads)]
            seen = torch.stack(each, dim=1)
        else:
            seen = functional.scaled_dot_product_attention(q, k, v)
        return x + self.merge(seen.transpose(1, 2).flatten(2))


def translation(on: Machine, fault: bool) -> Step:
    width = on.size(512, 64)
    model = nn.Sequential(*[HeadsInTurn(width, 16, fault) for _ in range(on.size(6, 2))]).to(on.device)
    data = torch.randn(on.size(16, 2), on.size(128, 16), width, device=on.device)

    def loss_of():
        with on.autocast():
            return model(data).float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def augmented(on: Machine, fault: bool) -> Step:
    """Each image is cropped and mirrored by itself, or all by one gather."""
    count, side, cropped = on.size(64, 16), on.size(96, 24), on.size(64, 16)
    width = on.size(64, 8)
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    ).to(on.device)
    images = torch.rand(count, 3, side, side, device=on.device)
    drawn = random.Random(0)
    line = torch.arange(cropped, device=on.device)

    def one_by_one():
        out = []
        for image in images:
            top, left = drawn.randrange(side - cropped), drawn.randrange(side - cropped)
            piece = image[:, top : top + cropped, left : left + cropped]
            piece = piece.flip(2) if drawn.random() < 0.5 else piece
            out.append((piece - piece.mean()) / (piece.std() + 1e-3))
        return torch.stack(out)

    def together():
        corners = torch.randint(0, side - cropped, (2, count, 1), device=on.device)
        rows, columns = corners[0] + line, corners[1] + line
        columns = torch.where(torch.rand(count, 1, device=on.device) < 0.5, columns.flip(1), columns)
        which = torch.arange(count, device=on.device)[:, None, None]
        pieces = images[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return (pieces - pieces.mean((1, 2, 3), keepdim=True)) / (pieces.std((1, 2, 3), keepdim=True) + 1e-3)

    def loss_of():
        return model(one_by_one() if fault else together()).square().mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def adversarial(on: Machine, fault: bool) -> Step:
    """A generator is trained through a discriminator, whose gradients nobody uses."""
    width = on.size(1024, 96)

    def layers(count: int, out: int) -> nn.Sequential:
        hidden = [each for _ in range(count) for each in (nn.Linear(width, width), nn.LeakyReLU(0.2))]
        return nn.Sequential(*hidden, nn.Linear(width, out)).to(on.device)

    generator, judge = layers(4, width), layers(12, 1)
    if not fault:
        judge.requires_grad_(False)
    noise = torch.randn(on.size(4096, 96), width, device=on.device)

    def loss_of():
        judge.zero_grad(set_to_none=True)
        with on.autocast():
            return functional.softplus(-judge(generator(noise))).mean()

    return training(loss_of, torch.optim.Adam(generator.parameters(), lr=1e-4, fused=True))


def advantages(on: Machine, fault: bool) -> Step:
    """Discounted sums backwards in time, step by step, or by one product with a triangular matrix."""
    steps, runs, width = on.size(128, 64), on.size(256, 16), on.size(512, 32)
    model = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    model = model.to(on.device)
    states = torch.randn(steps, runs, 64, device=on.device)
    rewards = torch.randn(steps, runs, device=on.device)
    times = torch.arange(steps, device=on.device)
    decay = (0.95 ** (times[None, :] - times[:, None]).float()).triu()

    def loss_of():
        values = model(states).squeeze(-1)
        errors = rewards - values.detach()
        if fault:
            sums, last = [], torch.zeros(runs, device=on.device)
            for i in reversed(range(steps)):
                last = errors[i] + 0.95 * last
                sums.append(last)
            wanted = torch.stack(sums[::-1])
        else:
            wanted = decay @ errors
        return (values - wanted).square().mean()

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


def spectrogram(on: Machine, fault: bool) -> Step:
    """The window and the bank of filters are made by the CPU in every step, or once."""
    size, bands, width = 400, 80, on.size(256, 32)
    model = nn.GRU(bands, width, batch_first=True).to(on.device)
    sounds = torch.randn(on.size(32, 4), on.size(16_000, 4000), device=on.device)

    def constants() -> tuple[torch.Tensor, torch.Tensor]:
        points = torch.linspace(0, size // 2, bands + 2)
        bins = torch.arange(size // 2 + 1).float()
        rising = (bins[:, None] - points[None, :-2]) / (points[1:-1] - points[:-2])
        falling = (points[None, 2:] - bins[:, None]) / (points[2:] - points[1:-1])
        bank = torch.minimum(rising, falling).clamp(min=0)
        return torch.hann_window(size).to(on.device), bank.to(on.device)

    kept = constants()

    def loss_of():
        window, bank = constants() if fault else kept
        power = torch.stft(sounds, size, 160, window=window, return_complex=True).abs().square()
        return model((power.transpose(1, 2) @ bank + 1e-6).log())[0].square().mean()

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


def averaged_on_host(on: Machine, fault: bool) -> Step:
    """Averages of the weights live on the CPU, and every step brings all weights there; or on the device."""
    width = on.size(1024, 128)
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(on.size(12, 4))]).to(on.device)
    data = torch.randn(on.size(2048, 32), width, device=on.device)
    parameters = [each.detach() for each in model.parameters()]
    averages = [each.cpu().clone() if fault else each.clone() for each in parameters]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        optimizer.zero_grad()
        with on.autocast():
            loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        if fault:
            for average, each in zip(averages, parameters, strict=True):
                average.lerp_(each.cpu(), 0.01)
        else:
            torch._foreach_lerp_(averages, parameters, 0.01)

    return step


class Viewed(nn.Module):
    """nn.MultiheadAttention as it comes, which averages the attention's weights for whoever asks, or told not to."""

    def __init__(self, width: int, asked: bool):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, max(1, width // 64), batch_first=True)
        self.norm, self.asked = nn.LayerNorm(width), asked

    def forward(self, x):
        y = self.norm(x)
        return x + self.attend(y, y, y, need_weights=self.asked)[0]


def maps_of_attention(on: Machine, fault: bool) -> Step:
    width = on.size(768, 64)
    model = nn.Sequential(*[Viewed(width, fault) for _ in range(on.size(8, 3))]).to(on.device)
    data = torch.randn(on.size(32, 2), on.size(512, 64), width, device=on.device)

    def loss_of():
        with on.autocast():
            return model(data).float().square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Lists(Dataset):
    def __init__(self, wide: int, as_lists: bool):
        drawn = random.Random(0)
        self.rows: Any = [[drawn.random() for _ in range(wide)] for _ in range(512)]
        if not as_lists:
            self.rows = torch.tensor(self.rows)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        row = self.rows[index % 512]
        return torch.tensor(row) if isinstance(row, list) else row


def listed(on: Machine, fault: bool) -> Step:
    """Samples are Python lists of numbers, which become tensors one by one in the training process."""
    wide, width = on.size(512, 128), on.size(1024, 96)
    batches = iter(DataLoader(Lists(wide, fault), batch_size=on.size(256, 64), shuffle=True))
    model = nn.Sequential(nn.Linear(wide, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8))
    model = model.to(on.device)

    def loss_of():
        return model(next(batches).to(on.device)).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "translation-heads-in-turn": Program(
        translation,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="attention runs once for each head; one call takes all heads",
    ),
    "augmented-image-by-image": Program(
        augmented,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="crops and norms for each image by itself; one gather does all",
    ),
    "adversarial-judge-gradients": Program(
        adversarial, ("unused-gradients",), says="gradients of the discriminator are computed and thrown away"
    ),
    "advantages-step-by-step": Program(
        advantages,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="a recurrence over time in Python; one product with a triangular matrix does it",
    ),
    "spectrogram-window-every-step": Program(
        spectrogram,
        ("constant-copies", "host-compute"),
        near=("launch-overhead", "pageable-copies", "host-sync"),
        says="constants of the spectrogram are made by the CPU in every step",
    ),
    "average-on-host": Program(
        averaged_on_host,
        ("host-sync", "repeated-operators", "host-compute", "exposed-copies", "pageable-copies"),
        near=("launch-overhead",),
        says="all weights are copied to the CPU in every step for an average that could live on the device",
    ),
    "attention-maps-for-nobody": Program(
        maps_of_attention,
        ("attention-unfused",),
        near=("pointwise-unfused",),
        says="need_weights=True makes attention compute and average its weights, which nobody reads",
    ),
    "samples-as-lists": Program(
        listed,
        ("input-bound",),
        near=("host-code", "host-compute"),
        says="the loader makes tensors of Python lists in the training process",
    ),
}

# There the average is on the host in any case.
ON_GPU_ONLY = {"average-on-host"}
