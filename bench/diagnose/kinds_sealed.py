"""A sealed test (library.py, SEALED): eighteen programs with a fault and four without, for a GPU and a CPU.

Written by somebody who had not read the rules, and declared and committed before any of these was recorded. Of kinds
that people run, with what they get wrong there: a detector's results, a sampler with a prompt, hooks, triplets, an
autoencoder, photos with captions, packed documents, words that are drawn, grouped keys, smoothed labels, activations
computed again, a differential equation, a policy's update, the closure of a framework, a large table, copies to go back
to, short epochs, a search for NaN. Some of it no rule may know; then `findings` has the nearest, and `says` says so.
For programs without a fault `near` names what is true of them all the same.

Open since it was scored: `findings` begins with the rule that was written for a program afterwards, where there is one
(anomaly-detection, recomputed-activations, repeated-inputs, copied-modules, full-sort, dense-gradients,
repeated-keys).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

import kinds_sealed_loops
import kinds_sealed_text
import kinds_sealed_vision
from gpu_models import Machine, Program, Step, training
from kinds_next import perceptron
from kinds_sealed_models import Attention, Denoiser, Layer, Patches


def finetuned(on: Machine) -> Step:
    """A vision transformer, all of it trained: bf16, fused attention and optimizer, a large batch."""
    side, width = on.size(224, 48), on.size(1024, 64)
    model = Patches(side, on.size(16, 8), width, on.size(16, 2), on.size(6, 3)).to(on.device)
    head = nn.Linear(width, 100).to(on.device)
    images = torch.randn(on.size(64, 8), 3, side, side, device=on.device)
    labels = torch.randint(0, 100, (len(images),), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(head(model(images)), labels)

    return training(loss_of, torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4, fused=True))


def guided(on: Machine) -> Step:
    """A diffusion sampler, with and without its prompt in one batch, in bf16 and channels_last."""
    count, text, side = on.size(16, 2), on.size(768, 32), on.size(64, 16)
    model: Any = Denoiser(on.size(320, 16), text, on.size(5, 2), on.size(3, 2))
    model = model.to(on.device, on.half, memory_format=torch.channels_last).eval()
    prompts = torch.randn(2 * count, on.size(77, 8), text, device=on.device, dtype=on.half)
    levels = torch.linspace(1, 0.1, 4, device=on.device, dtype=on.half)

    @torch.inference_mode()
    def step():
        x = torch.randn(count, 4, side, side, device=on.device, dtype=on.half)
        x = x.to(memory_format=torch.channels_last)
        for level in levels:
            free, led = model(torch.cat((x, x)), level.expand(2 * count, 1), prompts).chunk(2)
            x = x - 0.1 * torch.lerp(free, led, 5.0)
        return x

    return step


def hidden_words(on: Machine) -> Step:
    """Words of a text are guessed: only the hidden ones reach the head, whose places are known beforehand."""
    width, words, count, length = on.size(1024, 64), on.size(32768, 256), on.size(32, 4), on.size(512, 32)
    hidden = length // 8
    embed, head = nn.Embedding(words, width).to(on.device), nn.Linear(width, words).to(on.device)
    layers = [Layer(width, Attention(width, on.size(16, 2))) for _ in range(on.size(4, 2))]
    model = nn.Sequential(*layers, nn.LayerNorm(width)).to(on.device)
    text = torch.randint(0, words, (count, length), device=on.device)
    places = torch.stack([torch.randperm(length, device=on.device)[:hidden] for _ in range(count)])
    labels = text.gather(1, places)
    shown = text.scatter(1, places, 0)

    def loss_of():
        with on.autocast():
            seen = model(embed(shown)).gather(1, places[:, :, None].expand(-1, -1, width))
            return functional.cross_entropy(head(seen).flatten(0, 1), labels.flatten())

    parameters = [*embed.parameters(), *model.parameters(), *head.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def accumulated(on: Machine) -> Step:
    """Four parts of a batch before each update; gradients are clipped together, and the loss stays on the device."""
    width = on.size(2048, 192)
    model = perceptron(on, width, 2 * width, width, 2 * width, width)
    parts = torch.randn(4, on.size(8192, 96), width, device=on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    running = torch.zeros((), device=on.device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for part in parts:
            with on.autocast():
                loss = functional.mse_loss(model(part), part) / 4
            loss.backward()
            running.add_(loss.detach())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


HEALTHY = {
    "healthy-vit": Program(
        lambda on, _: finetuned(on),
        (),
        near=("pointwise-unfused",),
        says="large products in bf16; norms and activations could be fused for a little",
    ),
    "healthy-guided-sampler": Program(
        lambda on, _: guided(on),
        (),
        near=("pointwise-unfused",),
        says="convolutions in bf16 and channels_last; norms and activations could be fused for a little",
    ),
    "healthy-hidden-words": Program(
        lambda on, _: hidden_words(on),
        (),
        near=("pointwise-unfused",),
        says="large products in bf16, and the head only where it is asked; norms could be fused for a little",
    ),
    "healthy-accumulation": Program(
        lambda on, _: accumulated(on),
        (),
        near=("pointwise-unfused",),
        says="large products, one update for four parts: nothing that a setting would change",
    ),
}

PROGRAMS = {
    **kinds_sealed_vision.PROGRAMS,
    **kinds_sealed_text.PROGRAMS,
    **kinds_sealed_loops.PROGRAMS,
    **HEALTHY,
}

# On a CPU what is copied to the host is there already, noise is drawn there in any case, and there is no bf16.
ON_GPU_ONLY = {"vit-hooks-copy-activations", "vae-noise-drawn-by-the-host", "clip-compared-in-fp32"}
