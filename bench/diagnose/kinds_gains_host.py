"""Programs that gains are fitted with (kinds_gains.py), about hosts: waits, loops, work on the CPU, optimizers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, captured, convolutions, gpt, training
from kinds_gains_models import Apply, adam, trained
from record_truth import Gpt

# ---- Waiting ----


def boolean_index(on: Machine, fault: bool) -> Step:
    """Hidden values of chosen places, by a mask; mended by a product that has the same size every time."""
    width = on.size(512, 32)
    layers = nn.ModuleList(nn.Linear(width, width) for _ in range(12)).to(on.device)
    data = torch.randn(on.size(2048, 32), width, device=on.device)
    optimizer = adam(layers)

    def step():
        optimizer.zero_grad()
        x, total = data, torch.zeros((), device=on.device)
        for layer in layers:
            x = functional.relu(layer(x))
            chosen = x[:, 0] > 0
            total = total + (x[chosen].square().mean() if fault else (x.square() * chosen[:, None]).mean())
        total.backward()
        optimizer.step()

    return step


def finite(on: Machine, fault: bool) -> Step:
    """Whether each layer's output is finite, asked by the host; mended by one count that is read never."""
    width = on.size(768, 32)
    model = Gpt(6, width, max(1, width // 64), on.size(8192, 100)).to(on.device)
    tokens = torch.randint(0, 100, (on.size(8, 2), on.size(256, 16)), device=on.device)
    bad = torch.zeros((), device=on.device)

    @torch.no_grad()
    def step():
        with on.autocast():
            x = model.embed(tokens)
            for block in model.blocks:
                x = block(x)
                if fault:
                    if not torch.isfinite(x).all():
                        raise ValueError
                else:
                    bad.add_(torch.isfinite(x).all().logical_not())
            model.head(x)

    return step


def outputs_to_host(on: Machine, fault: bool) -> Step:
    step_of = gpt(on, layers=4, width=512, batch=8, length=256)
    data = torch.randn(on.size(2048, 16), on.size(1024, 16), device=on.device)
    kept: list[torch.Tensor] = []

    def step():
        kept.clear()
        kept.append((data * 2).sum(1).cpu() if fault else (data * 2).sum(1))
        step_of()

    return step


# ---- Loops ----


def heads_one_by_one(on: Machine, fault: bool) -> Step:
    """A matrix for each of 24 heads, multiplied in a loop; mended by one batched product."""
    heads, width = 24, on.size(128, 16)
    weights = nn.ParameterList(nn.Parameter(torch.randn(heads, width, width) / 11) for _ in range(3)).to(on.device)
    data = torch.randn(heads, on.size(512, 8), width, device=on.device)

    def loss_of():
        x = data
        for weight in weights:
            if fault:
                x = torch.stack([torch.relu(x[i] @ weight[i]) for i in range(heads)])
            else:
                x = torch.relu(torch.bmm(x, weight))
        return x.square().mean()

    return training(loss_of, adam(weights))


def samples_one_by_one(on: Machine, fault: bool) -> Step:
    """48 images normalized one after another; mended by the whole batch."""
    images = torch.rand(48, 3, on.size(128, 16), on.size(128, 16), device=on.device)

    def normalize(x):
        low, high = x.amin((-3, -2, -1), keepdim=True), x.amax((-3, -2, -1), keepdim=True)
        return ((x - low) / (high - low) - 0.5).clamp(-0.4, 0.4)

    @torch.no_grad()
    def step():
        return torch.stack([normalize(each) for each in images]) if fault else normalize(images)

    return step


def branches(on: Machine, fault: bool) -> Step:
    """Sixteen small networks for the parts of an input; mended by the same as batched products."""
    parts, width = 16, on.size(256, 16)
    first = nn.Parameter(torch.randn(parts, width, 2 * width, device=on.device) / 16)
    second = nn.Parameter(torch.randn(parts, 2 * width, width, device=on.device) / 22)
    data = torch.randn(parts, on.size(256, 8), width, device=on.device)

    def loss_of():
        if not fault:
            return torch.bmm(functional.gelu(torch.bmm(data, first)), second).square().mean()
        return sum((functional.gelu(data[i] @ first[i]) @ second[i]).square().mean() for i in range(parts)) / parts

    return training(loss_of, torch.optim.SGD([first, second], lr=0.01))


def losses_one_by_one(on: Machine, fault: bool) -> Step:
    """The accuracy of each of 40 classes, read one by one."""
    train = gpt(on, layers=2, width=256, batch=4, length=128)
    said = torch.randint(0, 40, (on.size(65536, 64),), device=on.device)
    truth = torch.randint(0, 40, (on.size(65536, 64),), device=on.device)

    def step():
        train()
        if fault:
            return [(said[truth == each] == each).float().mean().item() for each in range(40)]
        right = torch.zeros(40, device=on.device).index_add_(0, truth, (said == truth).float())
        return (right / torch.bincount(truth, minlength=40)).tolist()

    return step


# ---- Host ----


def images_on_host(on: Machine, fault: bool) -> Step:
    """Bytes turned into numbers by CPU operators; mended by copying the bytes."""
    raw = torch.randint(0, 256, (on.size(64, 2), 3, on.size(160, 16), on.size(160, 16)), dtype=torch.uint8)
    raw = raw.pin_memory() if on.is_gpu else raw
    mean = torch.tensor([0.4, 0.5, 0.6])[:, None, None]

    def images():
        if fault:
            return ((raw.float() / 255 - mean) / 0.25).to(on.device)
        return (raw.to(on.device, non_blocking=True).float() / 255 - mean.to(on.device)) / 0.25

    return convolutions(on, batch=64, side=160, channels=(32, 64), channels_last=False, images=images)


def weights_on_host(on: Machine, fault: bool) -> Step:
    """Weights of the loss sorted and normalized on the CPU for every step; mended by doing that on the device."""
    train = gpt(on, layers=2, width=512, batch=8, length=256)
    scores = torch.randn(on.size(400_000, 100))
    here = scores.to(on.device)

    def step():
        if fault:
            (scores.sort().values.cumsum(0) / len(scores)).exp().to(on.device)
        else:
            (here.sort().values.cumsum(0) / len(here)).exp()
        train()

    return step


def copied(on: Machine, fault: bool, *, rows: int, layers: int) -> Step:
    """A batch copied while the device has work for a while: pinned, or pageable."""
    width = 1024
    host = torch.randn(on.size(rows, 16), width)
    host = host.pin_memory() if on.is_gpu and not fault else host
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]).to(on.device)

    def loss_of():
        data = host.to(on.device, non_blocking=not fault)
        with on.autocast():
            return model(data).float().square().mean()

    return training(loss_of, adam(model))


# ---- Training ----


def small_tensors(on: Machine, fault: bool) -> Step:
    layers = [layer for _ in range(40) for layer in (nn.Linear(256, 256), nn.LayerNorm(256))]
    return trained(
        on, nn.Sequential(*layers), 64, 256, half=False, **({"foreach": False} if fault else {"fused": True})
    )


def large_tensors(on: Machine, fault: bool) -> Step:
    return gpt(on, layers=4, width=1536, batch=2, length=256, **({"foreach": False} if fault else {"fused": True}))


def head_only(on: Machine, fault: bool) -> Step:
    """Only the last layer is trained; the others' gradients are computed nevertheless."""
    width = on.size(2048, 64)
    body = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU())])
    head = nn.Linear(width, 100)
    model = nn.Sequential(body, head).to(on.device, on.half)
    body.requires_grad_(fault)
    data = torch.randn(on.size(16384, 32), width, device=on.device, dtype=on.half)
    return training(lambda: model(data).float().square().mean(), adam(head))


def adapters(on: Machine, fault: bool) -> Step:
    """Small matrices beside large frozen ones, in a program that is bound by its host."""
    width = on.size(512, 32)
    base = nn.ModuleList(nn.Linear(width, width) for _ in range(24)).to(on.device)
    small = nn.ModuleList(nn.Linear(width, 8, bias=False) for _ in range(24)).to(on.device)
    back = nn.ModuleList(nn.Linear(8, width, bias=False) for _ in range(24)).to(on.device)
    base.requires_grad_(fault)
    data = torch.randn(on.size(512, 8), width, device=on.device)

    def loss_of():
        x = data
        for layer, down, up in zip(base, small, back, strict=True):
            x = functional.relu(layer(x) + up(down(x)))
        return x.square().mean()

    return training(loss_of, torch.optim.AdamW([*small.parameters(), *back.parameters()], lr=1e-4, fused=True))


def evaluated(on: Machine, fault: bool, *, rows: int, width: int) -> Step:
    width = on.size(width, 32)
    layers = [layer for _ in range(16) for layer in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
    model = nn.Sequential(*layers).to(on.device)
    data = torch.randn(on.size(rows, 16), width, device=on.device)

    def step():
        with torch.set_grad_enabled(fault), on.autocast():
            return model(data).square().mean().detach()

    return step


def kept_gradients(on: Machine, fault: bool) -> Step:
    model = Gpt(2, on.size(1536, 64), on.size(24, 1), on.size(16384, 100)).to(on.device)
    tokens = torch.randint(0, 100, (2, on.size(256, 16)), device=on.device)

    def loss_of():
        with on.autocast():
            return model(tokens).float().square().mean()

    return training(loss_of, adam(model, foreach=True), set_to_none=not fault)


def norms_in_fp32(on: Machine, fault: bool) -> Step:
    width = on.size(1024, 64)

    def norm(x):
        if fault:
            return functional.layer_norm(x.float(), (width,)).to(x.dtype)
        return functional.layer_norm(x, (width,))

    layers = [layer for _ in range(4) for layer in (Apply(norm), nn.Linear(width, width), nn.GELU())]
    return trained(on, nn.Sequential(*layers), on.size(32768, 32), width)


def small_network(on: Machine, fault: bool) -> Step:
    model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(256, 256), nn.ReLU())]).to(on.device)
    data = torch.randn(64, 256, device=on.device)
    step = training(lambda: model(data).square().mean(), adam(model, fused=True, capturable=on.is_gpu))
    return step if fault or not on.is_gpu else captured(step)


def grown(on: Machine, fault: bool) -> Step:
    """A history that torch.cat copies 16 times a step; mended by writing into its place."""
    width, start = on.size(4096, 32), on.size(8192, 64)
    history = torch.randn(start + 16, width, device=on.device)
    rows = torch.randn(16, 1, width, device=on.device)

    @torch.no_grad()
    def step():
        kept = history[:start]
        for i in range(16):
            if fault:
                kept = torch.cat((kept, rows[i]))
            else:
                history[start + i] = rows[i][0]
                kept = history[: start + i + 1]
            kept.mean(0)

    return step


def optimizer_of_each(on: Machine, fault: bool, *, depth: int, **how: object) -> Step:
    """Every block of a GPT has an optimizer of its own; mended by one for all."""
    width = on.size(384, 32)
    model = Gpt(depth, width, max(1, width // 64), on.size(4096, 100)).to(on.device)
    tokens = torch.randint(0, 100, (on.size(8, 2), on.size(128, 16)), device=on.device)
    parts: list[nn.Module] = [model.embed, *model.blocks, model.head] if fault else [model]
    every = [adam(part, **how) for part in parts]

    def step():
        for optimizer in every:
            optimizer.zero_grad()
        with on.autocast():
            loss = model(tokens).float().square().mean()
        loss.backward()
        for optimizer in every:
            optimizer.step()

    return step


HOST = {
    "adapters-with-base": Program(adapters, ("unused-gradients",)),
    "boolean-index": Program(boolean_index, ("host-sync", "repeated-operators")),
    "branches": Program(branches, ("repeated-operators",)),
    "copied-large": Program(lambda on, fault: copied(on, fault, rows=32768, layers=4), ("pageable-copies",)),
    "copied-while-busy": Program(lambda on, fault: copied(on, fault, rows=16384, layers=24), ("pageable-copies",)),
    "evaluated-large": Program(lambda on, fault: evaluated(on, fault, rows=16384, width=1024), ("unused-gradients",)),
    "evaluated-small": Program(lambda on, fault: evaluated(on, fault, rows=256, width=256), ("unused-gradients",)),
    "finite": Program(finite, ("host-sync",)),
    "grown": Program(grown, ("growing-input",)),
    "head-only": Program(head_only, ("unused-gradients",)),
    "heads-one-by-one": Program(heads_one_by_one, ("repeated-operators",)),
    "images-on-host": Program(images_on_host, ("host-compute",)),
    "kept-gradients": Program(kept_gradients, ("zero-grad-fills",)),
    "large-tensors": Program(large_tensors, ("single-tensor-optimizer",)),
    "losses-one-by-one": Program(losses_one_by_one, ("host-sync", "repeated-operators")),
    "norms-in-fp32": Program(norms_in_fp32, ("dtype-ping-pong",)),
    "optimizer-of-each-block": Program(
        lambda on, fault: optimizer_of_each(on, fault, depth=on.size(24, 8), fused=True),
        ("many-optimizers",),
        near=("launch-overhead", "repeated-operators"),
    ),
    "optimizer-of-each-few": Program(
        lambda on, fault: optimizer_of_each(on, fault, depth=on.size(10, 6), foreach=True),
        ("many-optimizers",),
        near=("launch-overhead", "repeated-operators"),
    ),
    "outputs-to-host": Program(outputs_to_host, ("host-sync",)),
    "samples-one-by-one": Program(samples_one_by_one, ("repeated-operators",)),
    "small-network": Program(small_network, ("launch-overhead",)),
    "small-tensors": Program(small_tensors, ("single-tensor-optimizer",)),
    "weights-on-host": Program(weights_on_host, ("host-compute",)),
}
