"""Programs that nobody who writes a rule may read before they have been scored: the library's blind test (library.py).

Sixteen with a planted fault and mended, and four without a fault, which have no findings; for these `near` names what
is true of them all the same. `says` of a program is the verdict of a trained eye in words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import kinds_unseen_loops
import kinds_unseen_text
import kinds_unseen_vision
from gpu_models import Machine, Program, Step, captured, training
from kinds_unseen_text import mixer


class Noise(Dataset):
    def __init__(self, side: int):
        self.side = side

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.full((3, self.side, self.side), index % 255, dtype=torch.uint8), index % 100


def loaded(on: Machine) -> Step:
    """Bottlenecks in bf16 and channels_last; workers load bytes, which become floats on the device."""
    width = on.size(256, 32)
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 4, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
    for _ in range(8):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
    model = model.to(on.device, memory_format=torch.channels_last)
    # Pinned here and not by the loader, whose thread would use the GPU while CUPTI is detached from the process.
    batches = iter(
        DataLoader(Noise(on.size(128, 32)), on.size(128, 8), num_workers=on.size(4, 1), persistent_workers=True)
    )

    def loss_of():
        images, labels = (each.pin_memory() if on.is_gpu else each for each in next(batches))
        images = images.to(on.device, non_blocking=True).to(memory_format=torch.channels_last)
        with on.autocast():
            scores = model(images.float().div_(255))
            return functional.cross_entropy(scores, labels.to(on.device, non_blocking=True))

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True))


def replayed(on: Machine) -> Step:
    """A small policy's update as one CUDA graph."""
    width = on.size(512, 256)
    model = nn.Sequential(*[each for _ in range(8) for each in (nn.Linear(width, width), nn.ReLU())]).to(on.device)
    data = torch.randn(on.size(2048, 256), width, device=on.device, dtype=torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True, capturable=on.is_gpu)

    def loss_of():
        with on.autocast():
            return model(data).square().mean()

    step = training(loss_of, optimizer)
    return captured(step) if on.is_gpu else step


def embeddings(on: Machine) -> Step:
    """Sentences become vectors, in large batches: bf16, fused attention, inference mode."""
    width = on.size(1024, 128)
    layer = nn.TransformerEncoderLayer(width, on.size(16, 2), 4 * width, batch_first=True, activation="gelu")
    model = nn.TransformerEncoder(layer, on.size(8, 2)).to(on.device, on.half).eval()
    data = torch.randn(on.size(64, 16), on.size(256, 48), width, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        return model(data).mean(1)

    return step


def compiled(on: Machine) -> Step:
    """An MLP-Mixer under torch.compile."""
    length = on.size(256, 32)
    model: Any = mixer(on.size(4, 2), length, on.size(1024, 160), 512).to(on.device)
    if on.is_gpu:
        model = torch.compile(model)
    data = torch.randn(on.size(64, 8), length, 256, device=on.device)
    labels = torch.randint(0, 512, (len(data), length), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(data).flatten(0, 1), labels.flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


HEALTHY = {
    "healthy-loader": Program(
        lambda on, _: loaded(on),
        (),
        near=("pointwise-unfused",),
        says="the device is busy with convolutions; torch.compile could fuse norms and activations",
    ),
    "healthy-graph": Program(lambda on, _: replayed(on), (), says="one CUDA graph: nothing to gain from the host"),
    "healthy-embeddings": Program(
        lambda on, _: embeddings(on),
        (),
        near=("pointwise-unfused",),
        says="the device is busy with large matmuls; norms and activations could be fused for a little",
    ),
    "healthy-compiled": Program(lambda on, _: compiled(on), (), says="large matmuls and fused kernels: nothing to do"),
}

PROGRAMS = {
    **kinds_unseen_vision.PROGRAMS,
    **kinds_unseen_text.PROGRAMS,
    **kinds_unseen_loops.PROGRAMS,
    **HEALTHY,
}

# On a CPU there is no half precision, allocator's cache or queue to lose time with.
ON_GPU_ONLY = {"unet-without-autocast", "gan-empties-cache", "timer-synchronizes"}
