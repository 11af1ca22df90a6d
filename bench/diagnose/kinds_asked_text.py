"""Language programs of the asked test (library.py, ASKED), each with one planted fault and mended."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Language, frozen


def prompts(on: Machine, fault: bool) -> Step:
    """The first word after each prompt: scores of the vocabulary at every place of it, or at the last."""
    words, length, width = on.size(128_000, 4000), on.size(512, 64), on.size(2048, 64)
    model = Language(words, length, width, on.size(16, 2), on.size(6, 2)).to(on.device, on.half).eval()
    text = torch.randint(0, words, (on.size(32, 4), length), device=on.device)

    @torch.inference_mode()
    def step():
        if fault:
            return model(text)[:, -1].argmax(-1)
        return model.head(model.hidden(text)[:, -1]).argmax(-1)

    return step


class Adapted(nn.Module):
    """A frozen linear layer and a trained product of two thin matrices: added to its weights, or to its output."""

    def __init__(self, before: int, after: int, rank: int, merges: bool):
        super().__init__()
        self.base = nn.Linear(before, after, bias=False).requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, before) / before**0.5)
        self.up = nn.Parameter(torch.zeros(after, rank))
        self.merges = merges

    def forward(self, x):
        if self.merges:
            return functional.linear(x, self.base.weight + 2 * (self.up @ self.down))
        return self.base(x) + 2 * functional.linear(functional.linear(x, self.down), self.up)


class AdaptedMlp(nn.Module):
    def __init__(self, width: int, rank: int, merges: bool):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.back = Adapted(width, 4 * width, rank, merges), Adapted(4 * width, width, rank, merges)

    def forward(self, x):
        return x + self.back(functional.gelu(self.wide(self.norm(x))))


def adapters(on: Machine, fault: bool) -> Step:
    """Adapters of low rank are trained, the layers under them are not."""
    width, rank = on.size(2048, 320), on.size(16, 8)
    layers = [AdaptedMlp(width, rank, fault) for _ in range(on.size(6, 2))]
    model = nn.Sequential(*layers).to(on.device, on.half)
    for each in model.modules():
        if isinstance(each, nn.LayerNorm):
            each.requires_grad_(False)
    x = torch.randn(on.size(8192, 320), width, device=on.device, dtype=on.half)
    wanted = torch.randn_like(x)
    trained = [each for each in model.parameters() if each.requires_grad]
    return training(lambda: functional.mse_loss(model(x), wanted), torch.optim.AdamW(trained, lr=1e-4, fused=True))


def chosen_logs(model, text):
    """The logarithm of the probability of each word of a text."""
    scores = model(text[:, :-1]).flatten(0, 1)
    return -functional.cross_entropy(scores.float(), text[:, 1:].flatten(), reduction="none").view(len(text), -1)


def rewarded(on: Machine, fault: bool) -> Step:
    """Four passes over the same answers: a frozen reference and the policy before the update judge them in each pass,
    or once for all passes."""
    words, length, width = on.size(16_384, 200), on.size(257, 49), on.size(1024, 48)
    policy = Language(words, length, width, on.size(16, 2), on.size(4, 2)).to(on.device)
    reference, before = frozen(copy.deepcopy(policy)), frozen(copy.deepcopy(policy))
    text = torch.randint(0, words, (on.size(24, 4), length), device=on.device)
    gain = torch.randn(len(text), 1, device=on.device)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5, fused=True)

    @torch.no_grad()
    def judged():
        with on.autocast():
            return chosen_logs(reference, text), chosen_logs(before, text)

    def step():
        known = None if fault else judged()
        for _ in range(4):
            far, old = known or judged()
            with on.autocast():
                now = chosen_logs(policy, text)
            ratio, off = (now - old).exp(), far - now
            clipped = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
            loss = (0.05 * (off.exp() - off - 1) - clipped).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return step


def penalized_one_by_one(scores, written, penalty: float):
    """Words that a text has already are made less likely, text by text."""
    scores = scores.clone()
    for row, text in enumerate(written):
        seen = torch.unique(text)
        old = scores[row, seen]
        scores[row, seen] = torch.where(old < 0, old * penalty, old / penalty)
    return scores


def penalized(scores, written, penalty: float):
    old = scores.gather(1, written)
    return scores.scatter(1, written, torch.where(old < 0, old * penalty, old / penalty))


class Writer(nn.Module):
    """A recurrent language model, a word at a time."""

    def __init__(self, words: int, width: int, depth: int):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.cells = nn.ModuleList(nn.GRUCell(width, width) for _ in range(depth))

    def forward(self, word, states):
        x, after = self.embed(word), []
        for cell, state in zip(self.cells, states, strict=True):
            x = cell(x, state)
            after.append(x)
        return self.head(x), after


def written_out(on: Machine, fault: bool) -> Step:
    """Eight words of each text are drawn, and those that it has already are penalized."""
    words, width, count, length = on.size(32_000, 500), on.size(2048, 96), on.size(16, 8), on.size(256, 32)
    model = Writer(words, width, on.size(4, 2)).to(on.device, on.half).eval()
    text = torch.randint(0, words, (count, length), device=on.device)
    penalize = penalized_one_by_one if fault else penalized

    @torch.inference_mode()
    def step():
        states = [torch.zeros(count, width, device=on.device, dtype=on.half) for _ in model.cells]
        written = text
        for _ in range(8):
            scores, states = model(written[:, -1], states)
            word = penalize(scores.float(), written, 1.2).argmax(-1, keepdim=True)
            written = torch.cat((written, word), dim=1)
        return written

    return step


def served(on: Machine, fault: bool) -> Step:
    """Requests that begin with the same long instructions: read anew for each, or their keys and values are kept."""
    words, width, common, own = on.size(32_000, 300), on.size(1024, 64), on.size(512, 160), on.size(128, 16)
    model = Language(words, common + own, width, on.size(16, 2), on.size(8, 2)).to(on.device, on.half).eval()
    instructions = torch.randint(0, words, (1, common), device=on.device)
    requests = torch.randint(0, words, (on.size(96, 8), own), device=on.device)
    with torch.inference_mode():
        kept = model.body.keep(model.embed(instructions))

    @torch.inference_mode()
    def step():
        if fault:
            text = torch.cat((instructions.expand(len(requests), -1), requests), dim=1)
            hidden = model.hidden(text)
        else:
            hidden = model.body.after(model.embed(requests, common), kept)
        return model.head(hidden[:, -1]).argmax(-1)

    return step


PROGRAMS = {
    "prompt-scored-at-every-place": Program(
        prompts,
        ("discarded-results", "dominant-operator"),
        near=("memory-spike", "constant-work", "recomputed-prefix"),
        says="time to the first token: the head scores the vocabulary at every place of the prompt, and all but the "
        "last are dropped; take the last hidden state before the head",
    ),
    "lora-added-to-the-weights": Program(
        adapters,
        ("materialized-weights", "unused-gradients"),
        near=("dominant-operator", "dense-gradients", "pointwise-unfused", "repeated-operators"),
        says="LoRA as slow as training everything: the product of the thin matrices is added to the weights in each "
        "forward, so that backward computes the gradient of the full weights; apply them to the input in turn",
    ),
    "reference-run-in-every-pass": Program(
        rewarded,
        ("repeated-inputs", "constant-work"),
        near=("repeated-operators", "dominant-operator"),
        says="PPO with a language model: the reference and the old policy, both frozen, run again on the same answers "
        "in each of four passes; once before them is enough",
    ),
    "repetition-penalty-text-by-text": Program(
        written_out,
        ("host-sync", "launch-overhead", "repeated-operators"),
        near=("host-code", "small-batch", "device-underfilled"),
        says="generation slow with a repetition penalty: a Python loop over texts, and unique waits for the device in "
        "each; gather and scatter do all texts at once",
    ),
    "instructions-read-for-every-request": Program(
        served,
        ("recomputed-prefix", "repeated-inputs", "constant-work"),
        near=("dominant-operator",),
        says="serving with a long system prompt: it is run through the model for every request; keep its keys and "
        "values (prefix cache)",
    ),
}
