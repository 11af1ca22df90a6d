"""Audio, series and diffusion of the merged test (library.py, MERGED), each with one planted fault and mended."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer
from kinds_next import perceptron


def phases(on: Machine, before: int, after: int) -> torch.Tensor:
    """Low-pass filters, one for each place that a new sample may have between `before` old ones."""
    reach = math.ceil(6 * before / after)
    places = torch.arange(-reach, before + reach, device=on.device) / before
    times = (places - torch.arange(after, device=on.device)[:, None] / after) * after
    return (torch.sinc(times) * torch.cos(times.clamp(-6, 6) * math.pi / 12).square())[:, None] * after / before


def resampled_by_phase(waves, filters, stride: int):
    padded = functional.pad(waves, 2 * [(filters.shape[-1] - stride) // 2])
    new = [functional.conv1d(padded, each[None], stride=stride) for each in filters]
    return torch.stack(new, dim=-1).flatten(1)


def resampled_together(waves, filters, stride: int):
    padded = functional.pad(waves, 2 * [(filters.shape[-1] - stride) // 2])
    return functional.conv1d(padded, filters, stride=stride).mT.flatten(1)


def recognized(on: Machine, fault: bool) -> Step:
    """Recordings at 44.1 kHz become 16 kHz (on a CPU 24), and a transformer reads pieces of 160 samples."""
    width, count, seconds = on.size(768, 128), on.size(48, 8), on.size(200, 8) / 100
    model, inward = Transformer(width, on.size(12, 2), on.size(6, 4)).to(on.device), nn.Linear(160, width).to(on.device)
    waves = torch.randn(count, 1, int(44_100 * seconds), device=on.device)
    before, after = on.size(441, 147), on.size(160, 80)
    filters = phases(on, before, after)
    resampled = resampled_by_phase if fault else resampled_together

    @torch.inference_mode()
    def step():
        pieces = resampled(waves, filters, before).unflatten(1, (-1, 160))
        with on.autocast():
            return model(inward(pieces))

    return step


def padding_by_rows(lengths, longest: int):
    """True where a sequence is over."""
    mask = torch.zeros(len(lengths), longest, dtype=torch.bool, device=lengths.device)
    for row, length in enumerate(lengths):
        mask[row, int(length) :] = True
    return mask


def padding_by_comparing(lengths, longest: int):
    return torch.arange(longest, device=lengths.device) >= lengths[:, None]


def spoken(on: Machine, fault: bool) -> Step:
    """Speakers are told apart: recordings of many lengths, with masks before and after the encoder."""
    width, count, longest = on.size(512, 32), on.size(48, 56), on.size(256, 20)
    shorten = nn.Conv1d(on.size(80, 16), width, 3, stride=2, padding=1).to(on.device)
    model, head = Transformer(width, on.size(8, 2), on.size(6, 1)).to(on.device), nn.Linear(width, 400).to(on.device)
    frames = torch.randn(count, shorten.in_channels, longest, device=on.device)
    lengths = torch.randint(longest // 2, longest + 1, (count,), device=on.device)
    labels = torch.randint(0, 400, (count,), device=on.device)
    padding = padding_by_rows if fault else padding_by_comparing

    def loss_of():
        before, after = padding(lengths, longest), padding((lengths + 1) // 2, longest // 2)
        with on.autocast():
            y = model(shorten(frames.masked_fill(before[:, None], 0)).mT).masked_fill(after[..., None], 0)
            return functional.cross_entropy(head(y.sum(1) / lengths[:, None]), labels)

    parameters = [*shorten.parameters(), *model.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


LEVELS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95]


def quantiles_in_turn(drawn):
    return torch.stack([torch.quantile(drawn, level, dim=0) for level in LEVELS])


def quantiles_at_once(drawn, levels):
    return torch.quantile(drawn, levels, dim=0)


def forecast(on: Machine, fault: bool) -> Step:
    """Forecasts of demand are judged: possible futures are drawn, and their quantiles compared with what came."""
    series, past, ahead, width = on.size(2048, 32), on.size(512, 64), on.size(48, 16), on.size(4096, 128)
    model = perceptron(on, past, width, width, width, 2 * ahead).to(on.half).eval()
    history = torch.randn(series, past, device=on.device, dtype=on.half)
    came = torch.randn(series, ahead, device=on.device)
    levels = torch.tensor(LEVELS, device=on.device)

    @torch.inference_mode()
    def step():
        middle, spread = model(history).float().chunk(2, dim=1)
        futures = middle + functional.softplus(spread) * torch.randn(on.size(128, 64), series, ahead, device=on.device)
        off = came - (quantiles_in_turn(futures) if fault else quantiles_at_once(futures, levels))
        return torch.maximum(levels[:, None, None] * off, (levels - 1)[:, None, None] * off).mean((1, 2))

    return step


def places_by_search(schedule, times):
    """Where each time stands in the schedule."""
    return [(schedule == time).nonzero().item() for time in times]


def matched(on: Machine, fault: bool) -> Step:
    """A network learns to remove noise; how much there is follows from the times that were drawn."""
    width, count, length = on.size(2048, 96), on.size(64, 128), on.size(256, 2)
    model = perceptron(on, 17, width, width, width, 16)
    latents = torch.randn(count, length, 16, device=on.device)
    sigmas = torch.linspace(1, 0, 1000, device=on.device)
    schedule = sigmas * 1000

    def loss_of():
        places = torch.randint(0, len(schedule), (count,), device=on.device)
        times = schedule[places]
        sigma = sigmas[places_by_search(schedule, times) if fault else places][:, None, None]
        noise = torch.randn_like(latents)
        noisy = torch.lerp(latents, noise, sigma)
        with on.autocast():
            found = model(torch.cat((noisy, times[:, None, None].expand(-1, length, 1) / 1000), dim=2))
        return functional.mse_loss(found.float(), noise - latents)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "resampled-phase-by-phase": Program(
        recognized,
        ("repeated-operators",),
        near=("launch-overhead", "slow-convolution", "dominant-operator", "cudnn-benchmark"),
        where=("aten::conv1d", "aten::convolution", "aten::cudnn_convolution", "aten::mkldnn_convolution"),
        says="a resampler convolves the waves once for each of 160 phases; one convolution with 160 channels does all",
    ),
    "padding-masked-row-by-row": Program(
        spoken,
        ("repeated-operators", "host-sync"),
        near=("launch-overhead",),
        where=("aten::fill_", "aten::item", "aten::_local_scalar_dense"),
        says="padding masks are filled row by row, and each length is read by the host; compare a range with all "
        "lengths",
    ),
    "quantiles-sorted-one-by-one": Program(
        forecast,
        ("repeated-inputs", "full-sort"),
        near=("dominant-operator", "repeated-operators"),
        where=("aten::quantile", "aten::sort"),
        says="each of nine quantiles sorts the same futures again; torch.quantile takes all levels at once",
    ),
    "times-searched-one-by-one": Program(
        matched,
        ("host-sync",),
        near=("repeated-operators", "launch-overhead"),
        where=("aten::nonzero", "aten::item", "aten::_local_scalar_dense"),
        says="the place of each time in the noise schedule is searched by nonzero and read by the host; the places "
        "were drawn, so keep them",
    ),
}
