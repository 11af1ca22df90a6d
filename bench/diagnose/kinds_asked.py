"""A sealed test after questions that people ask (library.py, ASKED): twenty programs with a fault and six without.

For a GPU and a CPU, declared and committed before any of these was recorded. Their kinds are those of threads on slow
PyTorch programs: a detector's matcher, blur as augmentation, style transfer, video, evaluation of segmentation, the
first token, adapters, PPO with a reference, a repetition penalty, a system prompt, weight norm in a loop, CTC,
backtests, long convolutions, autocast in a loop, graphs, ranking, soft updates, a metric for the progress bar, a
compressed archive. About a third has no rule by name: there `findings` begins with the name that one would have, and
holds another only where that leads to the fault, too. For programs without a fault `near` names what is true of them
all the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

import kinds_asked_loops
import kinds_asked_signals
import kinds_asked_text
import kinds_asked_vision
from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer, frozen, pictures, stack, to_device
from kinds_next import perceptron


def denoised(on: Machine) -> Step:
    """A diffusion transformer is trained on latents that were encoded before; noise is drawn on the device."""
    width, count = on.size(1024, 64), on.size(64, 4)
    model = Transformer(width, on.size(16, 2), on.size(8, 2)).to(on.device)
    inward, outward = nn.Linear(16, width).to(on.device), nn.Linear(width, 16).to(on.device)
    latents = torch.randn(count, on.size(256, 24), 16, device=on.device)

    def loss_of():
        noise, level = torch.randn_like(latents), torch.rand(count, 1, 1, device=on.device)
        with on.autocast():
            found = outward(model(inward(torch.lerp(latents, noise, level))))
        return functional.mse_loss(found.float(), noise - latents)

    parameters = [*model.parameters(), *inward.parameters(), *outward.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def retrieved(on: Machine) -> Step:
    """Questions are encoded and compared with a gallery of vectors of length one; the best ten are kept."""
    width = on.size(1024, 96)
    tower = perceptron(on, width, 8 * width, 8 * width, width).to(on.half).eval()
    asked = torch.randn(on.size(32_768, 64), width, device=on.device, dtype=on.half)
    gallery = functional.normalize(torch.randn(on.size(16_384, 512), width, device=on.device, dtype=on.half), dim=1)

    @torch.inference_mode()
    def step():
        return (functional.normalize(tower(asked), dim=1) @ gallery.T).topk(10, dim=1).indices

    return step


def heard(on: Machine) -> Step:
    """A speech encoder: two convolutions shorten the spectrogram, a transformer reads it; the batch is full."""
    width, bands = on.size(1024, 64), on.size(80, 16)
    shorten: Any = nn.Sequential(
        nn.Conv1d(bands, width, 3, padding=1), nn.GELU(), nn.Conv1d(width, width, 3, stride=2, padding=1), nn.GELU()
    ).to(on.device)
    model, head = Transformer(width, on.size(16, 2), on.size(6, 2)).to(on.device), nn.Linear(width, 500).to(on.device)
    spectrograms = torch.randn(on.size(32, 4), bands, on.size(1024, 48), device=on.device)
    labels = torch.randint(0, 500, (len(spectrograms),), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(head(model(shorten(spectrograms).mT).mean(1)), labels)

    parameters = [*shorten.parameters(), *model.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def contrasted(on: Machine) -> Step:
    """Two towers and one product of all pairs in bf16: a large batch for a contrastive loss."""
    width, count = on.size(1024, 64), on.size(16_384, 128)
    towers = nn.ModuleList(perceptron(on, width, 4 * width, 4 * width, width // 2) for _ in range(2))
    left, right = torch.randn(2, count, width, device=on.device).unbind()
    labels = torch.arange(count, device=on.device)

    def loss_of():
        with on.autocast():
            a, b = (functional.normalize(tower(x), dim=1) for tower, x in zip(towers, (left, right), strict=True))
            return functional.cross_entropy(a @ b.T * 14, labels)

    return training(loss_of, torch.optim.AdamW(towers.parameters(), lr=1e-4, fused=True))


def outlined(on: Machine) -> Step:
    """Convolutions in bf16 and channels_last label the pixels of images; scores stay at a quarter of the size."""
    width, count, side = on.size(256, 24), on.size(32, 4), on.size(256, 32)
    layers = [*stack(3, width, width, stride=2), *stack(width, width, width, width), nn.Conv2d(width, 32, 1)]
    model = to_device(nn.Sequential(*layers), on)
    images = pictures(on, count, side)
    labels = torch.randint(0, 32, (count, side // 4, side // 4), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


def distilled(on: Machine) -> Step:
    """A small network learns from a large one, which is frozen, in bf16 and without gradients; images are new each
    time."""
    width, count, inputs = on.size(4096, 256), on.size(8192, 64), on.size(1024, 64)
    teacher = frozen(perceptron(on, inputs, width, width, width, 1000)).to(on.half)
    student = perceptron(on, inputs, width // 2, width // 2, 1000)

    def loss_of():
        x = torch.randn(count, inputs, device=on.device, dtype=on.half)
        with torch.no_grad():
            wanted = teacher(x).log_softmax(-1)
        with on.autocast():
            found = student(x).log_softmax(-1)
        return functional.kl_div(found, wanted.float(), reduction="batchmean", log_target=True)

    return training(loss_of, torch.optim.AdamW(student.parameters(), lr=1e-4, fused=True))


HEALTHY = {
    "healthy-diffusion-transformer": Program(
        lambda on, _: denoised(on),
        (),
        near=("pointwise-unfused",),
        says="large products in bf16, fused attention, noise on the device; norms and activations could be fused",
    ),
    "healthy-retrieval": Program(
        lambda on, _: retrieved(on),
        (),
        near=("pointwise-unfused", "dominant-operator"),
        says="large products in bf16 and topk of a gallery that was normalized before: nothing to mend",
    ),
    "healthy-speech-encoder": Program(
        lambda on, _: heard(on),
        (),
        near=("pointwise-unfused", "layout-copies"),
        says="large products in bf16; one transposed copy after the convolutions, norms and activations unfused",
    ),
    "healthy-contrastive-batch": Program(
        lambda on, _: contrasted(on),
        (),
        near=("pointwise-unfused", "dtype-ping-pong", "memory-spike"),
        says="all pairs in one product in bf16; the loss in fp32 is what autocast does",
    ),
    "healthy-outlines": Program(
        lambda on, _: outlined(on),
        (),
        near=("pointwise-unfused", "dtype-ping-pong"),
        says="convolutions in bf16 and channels_last; norms and activations could be fused",
    ),
    "healthy-distillation": Program(
        lambda on, _: distilled(on),
        (),
        near=("pointwise-unfused",),
        says="a frozen teacher in bf16 without gradients on images that are new each time: its work is needed",
    ),
}

PROGRAMS = {
    **kinds_asked_vision.PROGRAMS,
    **kinds_asked_text.PROGRAMS,
    **kinds_asked_signals.PROGRAMS,
    **kinds_asked_loops.PROGRAMS,
    **HEALTHY,
}

# On a CPU there is nothing to copy, the loss is computed by the host in any case, and there is no bf16.
ON_GPU_ONLY = {
    "matcher-copies-costs-of-other-images",
    "ctc-computed-by-the-host",
    "autocast-entered-in-every-time-step",
}
