"""Programs on images of the sealed test (library.py, SEALED), each with one planted fault and mended."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_next import perceptron
from kinds_sealed_models import Denoiser, Patches, convolved, photos


class Detector(nn.Module):
    """Scores and boxes for every place of an image."""

    def __init__(self, width: int, depth: int, classes: int):
        super().__init__()
        layers = convolved(3, width, 2) + convolved(width, width, 2)
        for _ in range(depth):
            layers += convolved(width, width)
        self.body = nn.Sequential(*layers)
        self.scores, self.boxes = nn.Conv2d(width, classes, 1), nn.Conv2d(width, 4, 1)

    def forward(self, images):
        seen = self.body(images)
        scores, classes = self.scores(seen).flatten(2).sigmoid().max(1)
        return scores, classes, self.boxes(seen).flatten(2).transpose(1, 2)


def results(on: Machine, fault: bool) -> Step:
    """A detector is evaluated: each number of each box is read by itself; or all numbers of a kind at once."""
    model: Any = Detector(on.size(256, 16), on.size(6, 2), on.size(80, 20))
    model = model.to(on.device, on.half, memory_format=torch.channels_last).eval()
    images, kept = photos(on, 8, on.size(512, 64)).to(on.half), on.size(20, 24)

    @torch.inference_mode()
    def step():
        scores, classes, boxes = model(images)
        best = scores.topk(kept, dim=1).indices
        scores, classes = scores.gather(1, best), classes.gather(1, best)
        boxes = boxes.gather(1, best[:, :, None].expand(-1, -1, 4))
        written = []
        if not fault:
            scores, classes, boxes = scores.tolist(), classes.tolist(), boxes.tolist()
        for image in range(len(images)):
            for score, label, box in zip(scores[image], classes[image], boxes[image], strict=True):
                if fault:
                    score, label, box = score.item(), label.item(), [each.item() for each in box]  # noqa: PLW2901
                written.append({"image_id": image, "category_id": label, "bbox": box, "score": score})
        return written

    return step


def prompted(on: Machine, fault: bool) -> Step:
    """A prompt becomes vectors in each round of a diffusion sampler; or once, before the first."""
    count, text, side = on.size(8, 2), on.size(1024, 64), on.size(64, 8)
    layer = nn.TransformerEncoderLayer(text, on.size(16, 2), 4 * text, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, on.size(16, 2), enable_nested_tensor=False).to(on.device, on.half).eval()
    model: Any = Denoiser(on.size(320, 16), text, on.size(5, 2), on.size(3, 2))
    model = model.to(on.device, on.half, memory_format=torch.channels_last).eval()
    words = torch.randn(count, on.size(77, 24), text, device=on.device, dtype=on.half)
    levels = torch.linspace(1, 0.1, 8, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        x = torch.randn(count, 4, side, side, device=on.device, dtype=on.half)
        x = x.to(memory_format=torch.channels_last)
        prompt = None
        for level in levels:
            if fault or prompt is None:
                prompt = encoder(words)
            x = x - 0.1 * model(x, level.expand(count, 1), prompt)
        return x

    return step


def hooked(on: Machine, fault: bool) -> Step:
    """Hooks that were left in copy what each layer of a vision transformer says to the CPU; or keep averages."""
    side, depth = on.size(224, 32), on.size(12, 2)
    model = Patches(side, on.size(16, 8), on.size(768, 64), on.size(12, 2), depth).to(on.device)
    head = nn.Linear(on.size(768, 64), 100).to(on.device)
    images = torch.randn(on.size(16, 4), 3, side, side, device=on.device)
    labels = torch.randint(0, 100, (len(images),), device=on.device)
    seen: dict[int, torch.Tensor] = {}

    def hook_of(place: int):
        def hook(_module, _inputs, said):
            seen[place] = said.detach().float().cpu() if fault else said.detach().mean((0, 1))

        return hook

    for place, layer in enumerate(model.layers):
        layer.register_forward_hook(hook_of(place))

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(head(model(images)), labels)

    return training(loss_of, torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, fused=True))


def hardest_one_by_one(distances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    losses = []
    for i in range(len(labels)):
        same = labels == labels[i]
        losses.append(functional.relu(distances[i][same].max() - distances[i][~same].min() + 0.2))
    return torch.stack(losses).mean()


def hardest_together(distances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    same = labels[:, None] == labels[None]
    furthest = distances.masked_fill(~same, float("-inf")).amax(1)
    nearest = distances.masked_fill(same, float("inf")).amin(1)
    return functional.relu(furthest - nearest + 0.2).mean()


def triplets(on: Machine, fault: bool) -> Step:
    """Metric learning: the hardest triplet is looked for photo by photo; or of all photos at once."""
    width, count = on.size(128, 8), on.size(192, 48)
    layers = convolved(3, width, 2) + convolved(width, width) + convolved(width, 2 * width, 2)
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 64))
    model = model.to(on.device, memory_format=torch.channels_last)
    images = photos(on, count, on.size(64, 16))
    labels = torch.arange(count, device=on.device) // 8
    hardest = hardest_one_by_one if fault else hardest_together

    def loss_of():
        with on.autocast():
            places = model(images)
        places = functional.normalize(places.float(), dim=1)
        return hardest(torch.cdist(places, places), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Autoencoder(nn.Module):
    """Of images, with noise in the middle; `on_host`: drawn where torch.randn draws unless told otherwise."""

    def __init__(self, width: int, inside: int, on_host: bool):
        super().__init__()
        self.on_host = on_host
        self.encoder = nn.Sequential(
            *convolved(3, width, 2), *convolved(width, width), nn.Conv2d(width, 2 * inside, 3, padding=1)
        )
        self.decoder = nn.Sequential(
            *convolved(inside, width),
            *convolved(width, width),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width, 3, 3, padding=1),
        )

    def forward(self, images):
        mean, spread = self.encoder(images).float().chunk(2, dim=1)
        noise = torch.randn(mean.shape).to(mean.device) if self.on_host else torch.randn_like(mean)
        missed = functional.mse_loss(self.decoder(mean + noise * (0.5 * spread).exp()).float(), images)
        return missed - 0.5e-3 * (1 + spread - mean.square() - spread.exp()).mean()


def autoencoder(on: Machine, fault: bool) -> Step:
    model: Any = Autoencoder(on.size(128, 8), on.size(8, 4), fault)
    model = model.to(on.device, memory_format=torch.channels_last)
    images = photos(on, on.size(64, 4), on.size(128, 16))

    def loss_of():
        with on.autocast():
            return model(images)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def paired(on: Machine, fault: bool) -> Step:
    """Photos and captions: all are compared with all in float32, the towers before it in bf16; or all in bf16."""
    width, count = on.size(1024, 32), on.size(16384, 64)
    photo, caption = perceptron(on, width, 2 * width, 512), perceptron(on, width, 2 * width, 512)
    scale = nn.Parameter(torch.tensor(2.0, device=on.device))
    data = torch.randn(2, count, width, device=on.device)
    labels = torch.arange(count, device=on.device)

    def loss_of():
        with on.autocast():
            left = functional.normalize(photo(data[0]), dim=1)
            right = functional.normalize(caption(data[1]), dim=1)
            if not fault:
                scores = scale.exp() * left @ right.T
        if fault:
            scores = scale.exp() * left.float() @ right.float().T
        return (
            functional.cross_entropy(scores.float(), labels) + functional.cross_entropy(scores.T.float(), labels)
        ) / 2

    parameters = [*photo.parameters(), *caption.parameters(), scale]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


PROGRAMS = {
    "detector-results-item-by-item": Program(
        results,
        ("host-sync", "repeated-operators", "host-code"),
        near=("launch-overhead",),
        says="every number of every box is read by an item() of its own; tolist() reads all of them at once",
    ),
    "sampler-prompt-encoded-again": Program(
        prompted,
        ("repeated-inputs", "constant-work", "repeated-operators"),
        near=("launch-overhead", "dominant-operator"),
        says="the text encoder runs in every round of the sampler on the same prompt; once before the loop will do",
    ),
    "vit-hooks-copy-activations": Program(
        hooked,
        ("host-sync", "exposed-copies", "pageable-copies"),
        near=("launch-overhead", "host-compute"),
        says="hooks copy the output of every layer to the CPU and wait for it",
    ),
    "triplets-mined-anchor-by-anchor": Program(
        triplets,
        ("host-sync", "repeated-operators"),
        near=("launch-overhead",),
        says="a Python loop over photos, with boolean indices that wait for the device; masks do all photos at once",
    ),
    "vae-noise-drawn-by-the-host": Program(
        autoencoder,
        ("host-compute", "exposed-copies"),
        near=("pageable-copies", "host-sync"),
        says="the CPU draws the noise and copies it to the device, which could draw it",
    ),
    "clip-compared-in-fp32": Program(
        paired,
        ("fp32-matmul", "tensor-cores-unused"),
        near=("dtype-ping-pong", "dominant-operator"),
        says="the product of all photos and all captions is computed in float32, outside of autocast",
    ),
}
