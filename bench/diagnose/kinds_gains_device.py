"""Programs that rules about the device are fitted with (kinds_gains.py): copies of constants, streams, float64, grids.

Each is planted proof of a rule, and mended it must not fire.
"""

from __future__ import annotations

import os

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_gains_models import adam


def constants_copied(on: Machine, fault: bool) -> Step:
    """Mean and deviation of images, and the classes' weights, become tensors of the device in every step."""
    width, classes = on.size(96, 16), on.size(1000, 100)
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)
    ).to(on.device)
    images = torch.rand(on.size(32, 4), 3, 64, 64, device=on.device)
    labels = torch.arange(len(images), device=on.device)
    numbers = [1.0 + i % 7 for i in range(classes)]

    def constants() -> list[torch.Tensor]:
        mean, deviation = ([[[each]] for each in three] for three in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        return [torch.tensor(each, device=on.device) for each in (mean, deviation, numbers)]

    kept = constants()

    def loss_of():
        mean, deviation, weights = constants() if fault else kept
        return functional.cross_entropy(model((images - mean) / deviation), labels, weight=weights)

    return training(loss_of, adam(model))


def mask_copied(on: Machine, fault: bool) -> Step:
    """A causal bias is built on the host and copied for each layer."""
    length, width = on.size(512, 64), on.size(256, 32)
    layers = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(8)).to(on.device, on.half)
    data = torch.randn(on.size(8, 2), length, width, device=on.device, dtype=on.half)

    def bias() -> torch.Tensor:
        return torch.full((length, length), -1e4).triu(1).to(on.device, on.half)

    kept = bias()

    @torch.inference_mode()
    def step():
        x = data
        for layer in layers:
            q, k, v = layer(x).chunk(3, dim=-1)
            x = x + functional.scaled_dot_product_attention(q, k, v, attn_mask=bias() if fault else kept)
        return x

    return step


def streams_in_turn(on: Machine, fault: bool, *, rows: int = 64, count: int = 3) -> Step:
    """Parts of a batch on streams of their own, which wait for the one before; products too small for the device."""
    streams = [torch.cuda.Stream() for _ in range(count)]
    parts = [torch.randn(rows, 16_384, device=on.device) for _ in streams]

    @torch.inference_mode()
    def step():
        here = torch.cuda.current_stream()
        before = here
        for stream, part in zip(streams, parts, strict=True):
            stream.wait_stream(before if fault else here)
            with torch.cuda.stream(stream):
                x = part
                for _ in range(8):
                    x = torch.logcumsumexp(x, dim=1).sin()
            before = stream
        for stream in streams:
            here.wait_stream(stream)

    return step


class Wide(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def in_double(on: Machine, fault: bool, *, rows: int, width: int, train: bool = True) -> Step:
    dtype = torch.float64 if fault else torch.float32
    model = Wide(on.size(width, 48)).to(on.device, dtype)
    data = torch.randn(on.size(rows, 64), on.size(width, 48), device=on.device, dtype=dtype)
    if not train:
        return lambda: torch.no_grad()(model)(data)
    return training(lambda: model(data).square().mean(), torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def loss_in_double(on: Machine, fault: bool) -> Step:
    """Targets from NumPy are float64, and what the model says becomes float64 with them."""
    width = on.size(2048, 64)
    model = Wide(width).to(on.device)
    data = torch.randn(on.size(8192, 256), width, device=on.device)
    targets = torch.randn(len(data), width, device=on.device, dtype=torch.float64 if fault else torch.float32)

    def loss_of():
        with on.autocast():
            said = model(data)
        off = said.to(targets.dtype) - targets
        return (off.square() / (1 + off.abs())).mean()

    return training(loss_of, adam(model))


def backward_for_each(on: Machine, fault: bool, *, rows: int, width: int, losses: int) -> Step:
    """A backward pass for every loss over a shared trunk."""
    trunk = Wide(on.size(width, 64)).to(on.device)
    heads = nn.ModuleList(nn.Linear(on.size(width, 64), 8) for _ in range(losses)).to(on.device)
    data = torch.randn(on.size(rows, 64), on.size(width, 64), device=on.device)
    optimizer = adam(nn.ModuleList([trunk, heads]))

    def step():
        optimizer.zero_grad()
        hidden = trunk(data)
        each = [head(hidden).square().mean() for head in heads]
        if fault:
            for loss in each:
                loss.backward(retain_graph=True)
        else:
            torch.stack(each).sum().backward()
        optimizer.step()

    return step


def few_blocks(on: Machine, fault: bool) -> Step:
    """A scan along the longest dimension of few rows keeps few multiprocessors busy; in two levels it keeps all."""
    data = torch.randn(on.size(16, 4), on.size(1 << 19, 1 << 12), device=on.device)

    @torch.inference_mode()
    def step():
        x = data
        for _ in range(4):
            if fault:
                x = torch.logcumsumexp(x, dim=1)
            else:
                parts = torch.logcumsumexp(x.unflatten(1, (-1, 512)), dim=2)
                before = torch.logcumsumexp(parts[..., -1], dim=1).roll(1, 1)
                before[:, 0] = float("-inf")
                x = torch.logaddexp(parts, before[..., None]).flatten(1)
            x = x.sin()
        return x

    return step


def unchanged_sorted(on: Machine, fault: bool) -> Step:
    """What never changes is sorted in every step; mended: once."""
    keys = torch.randint(0, 1 << 20, (on.size(1 << 24, 1 << 15),), device=on.device)
    values = torch.randn(len(keys), device=on.device)
    kept = keys.argsort()

    @torch.inference_mode()
    def step():
        order = keys.argsort() if fault else kept
        return values[order].cumsum(0)

    return step


def padded_texts(on: Machine, fault: bool) -> Step:
    """Texts padded to the longest that can be, nine tenths of it zeros; mended: to the longest of the batch."""
    width, longest, real = on.size(1024, 64), on.size(1024, 128), on.size(160, 16)
    layer = nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).to(on.device)
    embed = nn.Embedding(1000, width, padding_idx=0).to(on.device)
    tokens = torch.zeros(on.size(16, 4), longest, dtype=torch.long, device=on.device)
    tokens[:, :real] = torch.randint(1, 1000, (len(tokens), real), device=on.device)

    def loss_of():
        batch = tokens if fault else tokens[:, :real]
        with on.autocast():
            return model(embed(batch))[:, :real].float().square().mean()

    return training(loss_of, adam(nn.ModuleList([model, embed])))


def copied_state(on: Machine, fault: bool, *, layers: int, size: int) -> Step:
    """All buffers are cloned before a step, in case it has to be undone."""
    states = [torch.randn(on.size(size, 1 << 16), device=on.device, dtype=on.half) for _ in range(layers)]
    model = Wide(on.size(1024, 32)).to(on.device, on.half)
    data = torch.randn(on.size(4096, 64), on.size(1024, 32), device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        saved = [state.clone() for state in states] if fault else []
        model(data)
        for state in states:
            state[:1024] += 1
        return saved

    return step


def volumes(on: Machine, fault: bool) -> Step:
    """Convolutions of volumes, for which cuDNN's first choice is often slow; mended: it may try them all."""
    width, side = on.size(48, 4), on.size(48, 8)
    model = nn.Sequential(
        nn.Conv3d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv3d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv3d(width, width, 5, padding=2),
    ).to(on.device)
    data = torch.randn(4, 1, side, side, side, device=on.device)
    step_of = training(lambda: model(data).square().mean(), adam(model))

    def step():
        torch.backends.cudnn.benchmark = not fault
        with torch.autocast(on.device, dtype=torch.float16, enabled=on.is_gpu):
            step_of()

    return step


def too_many_threads(on: Machine, fault: bool) -> Step:
    """Four threads for each core of the machine, or one."""
    cores = len(os.sched_getaffinity(0))
    threads = 4 * cores if fault else cores
    model = Wide(256)
    data = torch.randn(256, 256)
    step_of = training(lambda: model(data).square().mean(), adam(model))

    def step():
        torch.set_num_threads(threads)
        step_of()

    return step


DEVICE = {
    "threads-oversubscribed": Program(too_many_threads, ("cpu-oversubscription",)),
    "volumes-not-benchmarked": Program(volumes, ("cudnn-benchmark",)),
    "constants-copied": Program(constants_copied, ("constant-copies", "host-sync", "pageable-copies")),
    "mask-copied": Program(mask_copied, ("constant-copies", "host-compute")),
    "streams-in-turn": Program(streams_in_turn, ("stream-waits",)),
    "streams-in-turn-two": Program(lambda on, fault: streams_in_turn(on, fault, rows=16, count=2), ("stream-waits",)),
    "double-large": Program(lambda on, fault: in_double(on, fault, rows=2048, width=2048), ("fp64-compute",)),
    "double-inference": Program(
        lambda on, fault: in_double(on, fault, rows=8192, width=512, train=False), ("fp64-compute",)
    ),
    "double-loss": Program(loss_in_double, ("fp64-compute", "dtype-ping-pong", "pointwise-unfused")),
    "backward-for-each": Program(
        lambda on, fault: backward_for_each(on, fault, rows=8192, width=1024, losses=4), ("repeated-backward",)
    ),
    "backward-for-each-small": Program(
        lambda on, fault: backward_for_each(on, fault, rows=64, width=128, losses=8), ("repeated-backward",)
    ),
    "few-blocks": Program(few_blocks, ("device-underfilled",), saves_time=False),
    "unchanged-sorted": Program(unchanged_sorted, ("dominant-operator",)),
    "padded-texts": Program(padded_texts, ("padding",)),
    "state-copied": Program(
        lambda on, fault: copied_state(on, fault, layers=24, size=1 << 24), ("whole-copies", "repeated-operators")
    ),
}

ON_GPU_ONLY = {
    "constants-copied",
    "mask-copied",
    "streams-in-turn",
    "streams-in-turn-two",
    "few-blocks",
    "volumes-not-benchmarked",
}
