"""Programs of the asked test (library.py, ASKED) for sounds and series, each with one planted fault and mended."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer
from kinds_next import perceptron


def vocoder(on: Machine, fault: bool) -> Step:
    """A recurrent network with normalized weights makes a sound frame by frame: the weights are normalized for each
    frame, or once for all."""
    width, frames = on.size(1024, 192), on.size(48, 12)
    cell, out = nn.GRUCell(width, width).to(on.device, on.half), nn.Linear(width, width).to(on.device, on.half)
    for module, name in ((cell, "weight_ih"), (cell, "weight_hh"), (out, "weight")):
        weight_norm(module, name)
    given = torch.randn(on.size(64, 4), frames, width, device=on.device, dtype=on.half)
    wanted = torch.randn_like(given)

    def loss_of():
        state, made = torch.zeros_like(given[:, 0]), []
        with contextlib.nullcontext() if fault else parametrize.cached():
            for frame in given.unbind(1):
                state = cell(frame, state)
                made.append(out(state))
        return functional.mse_loss(torch.stack(made, dim=1), wanted)

    parameters = [*cell.parameters(), *out.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def spelled(on: Machine, fault: bool) -> Step:
    """Speech recognition, whose CTC loss is computed by the host or by the device."""
    count, length, width, letters, longest = on.size(32, 2), on.size(320, 24), on.size(768, 32), 64, on.size(48, 6)
    body, head = (
        Transformer(width, on.size(12, 2), on.size(6, 1)).to(on.device),
        nn.Linear(width, letters).to(on.device),
    )
    sounds = torch.randn(count, length, width, device=on.device)
    place = "cpu" if fault else on.device
    spellings = torch.randint(1, letters, (count, longest), device=place)
    lengths, longests = torch.full((count,), length), torch.full((count,), longest)

    def loss_of():
        with on.autocast():
            scores = head(body(sounds))
        logs = scores.float().log_softmax(-1).transpose(0, 1).to(place)
        return functional.ctc_loss(logs, spellings, lengths, longests)

    parameters = [*body.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


class Past(nn.Module):
    """Dilated convolutions: the output at each place depends on the `sees` places up to it, and there is none for the
    places before that."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        layers: list[nn.Module] = []
        for layer in range(depth):
            layers += [nn.Conv1d(1 if layer == 0 else width, width, 3, dilation=2**layer), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.sees = 1 + 2 * (2**depth - 1)

    def forward(self, series):
        return self.layers(series[:, None])


def window_by_window(model: Past, series):
    windows = series.unfold(1, model.sees, 1)
    return model(windows.flatten(0, 1)).squeeze(-1).unflatten(0, windows.shape[:2])


def all_windows(model: Past, series):
    return model(series).transpose(1, 2)


def forecast(on: Machine, fault: bool) -> Step:
    """A forecast from every day of the past: a network of convolutions runs on each window, or once over the series."""
    count, length, width, ahead = on.size(256, 8), on.size(1024, 160), on.size(128, 16), on.size(24, 6)
    model = Past(width, on.size(5, 4)).to(on.device, on.half).eval()
    head = perceptron(on, width, 8 * width, 8 * width, ahead).to(on.half).eval()
    series = torch.randn(count, length + ahead, device=on.device, dtype=on.half)
    truth = series.unfold(1, ahead, 1)[:, model.sees :]
    run = window_by_window if fault else all_windows

    @torch.inference_mode()
    def step():
        forecasts = head(run(model, series[:, :length]))
        return functional.l1_loss(forecasts, truth)

    return step


class Long(nn.Module):
    """A convolution as long as the sequence, by Fourier transforms of `size` places, of which 2 L - 1 are enough."""

    def __init__(self, width: int, length: int, size: int):
        super().__init__()
        self.filters = nn.Parameter(torch.randn(width, length) / length)
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, width)
        self.size = size

    def forward(self, x):
        seen = torch.fft.rfft(self.norm(x).mT.float(), self.size) * torch.fft.rfft(self.filters, self.size)
        return x + self.mix(torch.fft.irfft(seen, self.size)[..., : x.shape[1]].mT)


def remembered(on: Machine, fault: bool) -> Step:
    """Layers of long convolutions: transforms of as many places as are needed, a prime number, or of one more, a power
    of two."""
    length, width = 4096, on.size(256, 4)
    size = 2 * length - 1 if fault else 2 * length
    model: Any = nn.Sequential(*[Long(width, length, size) for _ in range(on.size(4, 3))]).to(on.device)
    x = torch.randn(on.size(16, 2), length, width, device=on.device)
    wanted = torch.randn_like(x)

    def loss_of():
        with on.autocast():
            return functional.mse_loss(model(x).float(), wanted)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Spoken(nn.Module):
    """A network that reads a sequence step by step."""

    def __init__(self, width: int):
        super().__init__()
        self.cell, self.gate, self.out = (
            nn.Linear(2 * width, width),
            nn.Linear(2 * width, width),
            nn.Linear(width, width),
        )

    def forward(self, seen, state):
        both = torch.cat((seen.to(state.dtype), state), dim=-1)
        return torch.lerp(state, torch.tanh(self.cell(both)), torch.sigmoid(self.gate(both)).to(state.dtype))


def read_step_by_step(on: Machine, fault: bool) -> Step:
    """Mixed precision is entered in every time step, which drops the halved weights at its end; or around the loop."""
    width, length = on.size(3072, 32), on.size(48, 4)
    model = Spoken(width).to(on.device)
    given = torch.randn(on.size(256, 4), length, width, device=on.device, dtype=on.half)
    wanted = torch.randn(len(given), width, device=on.device)
    whole = contextlib.nullcontext if fault else on.autocast
    each = on.autocast if fault else contextlib.nullcontext

    def loss_of():
        state = torch.zeros_like(given[:, 0])
        with whole():
            for now in given.unbind(1):
                with each():
                    state = model(now, state)
            with each():
                return functional.mse_loss(model.out(state).float(), wanted)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "weights-normalized-for-every-frame": Program(
        vocoder,
        ("repeated-operators", "constant-work", "repeated-inputs"),
        near=("launch-overhead", "pointwise-unfused", "dominant-operator", "dtype-ping-pong"),
        says="weight_norm in a loop over time: the same weights are normalized for every frame, and backward as often; "
        "parametrize.cached() around the loop",
    ),
    "ctc-computed-by-the-host": Program(
        spelled,
        ("host-compute", "exposed-copies"),
        near=("host-sync", "pageable-copies"),
        says="speech recognition with low utilization: log probabilities go to the host for the CTC loss, and the "
        "device waits for its gradients; ctc_loss runs on the device",
    ),
    "forecasts-window-by-window": Program(
        forecast,
        ("overlapping-windows", "recomputed-prefix"),
        near=("dominant-operator", "repeated-operators", "layout-copies", "whole-copies", "memory-spike"),
        says="a backtest with sliding windows: causal convolutions run on every window by itself, though neighbours "
        "share all but one place; one pass over the series has all outputs",
    ),
    "fourier-transform-of-prime-length": Program(
        remembered,
        ("fft-length", "dominant-operator"),
        near=("pointwise-unfused", "layout-copies"),
        says="slow long convolutions: FFTs of 2 L - 1 = 8191 places, a prime, for which there is no fast plan; pad to "
        "8192",
    ),
    "autocast-entered-in-every-time-step": Program(
        read_step_by_step,
        ("dtype-ping-pong", "repeated-operators", "constant-work"),
        near=("launch-overhead", "pointwise-unfused", "repeated-inputs"),
        says="mixed precision brings nothing for a recurrent network: autocast is entered in each time step and "
        "forgets the halved weights at its end, so that they are cast again; enter it around the loop",
    ),
}
