"""Language-model programs of the library (library.py), each with one planted fault and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from record_truth import Block, Gpt


class PlainAttention(Block):
    """Scores, mask, softmax in fp32 and dropout, as in older model code."""

    def attend(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        mask = torch.full(scores.shape[-2:], float("-inf"), device=q.device, dtype=scores.dtype).triu(1)
        weights = functional.softmax(scores + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        return functional.dropout(weights, 0.1, self.training) @ v


class FusedAttention(Block):
    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)


class MaskedAttention(Block):
    """A mask as a tensor, which the fastest kernels do not take."""

    def attend(self, q, k, v):
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).tril()
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def language(on: Machine, block: type[Block], *, layers=4, width=1024, batch=8, length=1024) -> Step:
    width, batch, length = on.size(width, 64), on.size(batch, 2), on.size(length, 128)
    model = Gpt(layers if on.is_gpu else 2, width, max(1, width // 64), on.size(16384, 100), block).to(on.device)
    tokens = torch.randint(0, 100, (batch, length + 1), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


class Lora(nn.Module):
    def __init__(self, base: nn.Linear):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(base.in_features, 8, bias=False), nn.Linear(8, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def lora(on: Machine, fault: bool) -> Step:
    """Only the adapters are trained, but the base weights get gradients as well; mended by requires_grad_(False)."""
    width = on.size(1536, 64)
    model = Gpt(4, width, max(1, width // 64), on.size(8192, 100))
    model.requires_grad_(fault)
    adapters: list[torch.Tensor] = []
    for block in model.blocks:
        for name in ("qkv", "out", "up", "down"):
            adapter = Lora(getattr(block, name))
            setattr(block, name, adapter)
            adapters += [adapter.down.weight, adapter.up.weight]
    model.to(on.device)
    tokens = torch.randint(0, 100, (on.size(8, 2), on.size(512, 16) + 1), device=on.device)
    optimizer = torch.optim.AdamW(adapters, lr=1e-4, fused=True)

    def step():
        model.zero_grad(set_to_none=True)
        with on.autocast():
            loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return step


class Decoder(nn.Module):
    """A GPT that can keep keys and values: `cache` is a list with a pair for each layer, which grows with torch.cat or
    is filled in place."""

    def __init__(self, layers: int, width: int, words: int):
        super().__init__()
        self.heads = max(1, width // 64)
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.blocks = nn.ModuleList([Block(width, self.heads) for _ in range(layers)])

    def empty(self, batch: int, length: int):
        like = self.embed.weight
        shape = (2, batch, self.heads, length, like.shape[1] // self.heads)
        return [torch.zeros(shape, device=like.device, dtype=like.dtype) for _ in self.blocks]

    def forward(self, tokens, cache=None, at=0):
        x = self.embed(tokens)
        b, t, c = x.shape
        for i, block in enumerate(self.blocks):
            q, k, v = block.qkv(block.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            if cache is not None and cache[i].shape[3] > at:
                cache[i][:, :, :, at : at + t] = torch.stack((k, v))
                k, v = cache[i][:, :, :, : at + t]
            elif cache is not None:
                cache[i] = torch.cat((cache[i], torch.stack((k, v))), dim=3)
                k, v = cache[i]
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
            x = x + block.out(y.transpose(1, 2).reshape(b, t, c))
            x = x + block.down(functional.gelu(block.up(block.norm2(x))))
        return self.head(x[:, -1:])


def generation(on: Machine, *, cached: bool, prefix: int, tokens: int, layers=6, width=1024, batch=4) -> Step:
    """One step: `tokens` tokens after a prefix whose keys and values were computed before, if they are kept at all."""
    prefix = on.size(prefix, max(16, prefix // 16))
    model = Decoder(layers if on.is_gpu else 2, on.size(width, 64), on.size(8192, 100)).to(on.device, on.half).eval()
    begin = torch.randint(0, 100, (batch, prefix), device=on.device)
    cache = model.empty(batch, prefix + tokens + 1)
    with torch.no_grad():
        model(begin, cache)

    @torch.no_grad()
    def step():
        text = begin
        for i in range(tokens):
            scores = model(text[:, -1:], cache, prefix + i - 1) if cached else model(text)
            text = torch.cat((text, scores.argmax(-1)), dim=1)
        return text

    return step


def growing_cache(on: Machine, fault: bool) -> Step:
    """A cache that torch.cat copies for every token; mended by one that is filled in place."""
    prefix, tokens, batch = on.size(4096, 256), on.size(16, 4), on.size(16, 4)
    model = Decoder(on.size(4, 2), on.size(1024, 64), on.size(8192, 100)).to(on.device, on.half).eval()
    begin = torch.zeros(batch, 1, dtype=torch.long, device=on.device)
    kept = model.empty(batch, prefix + (0 if fault else tokens))

    @torch.no_grad()
    def step():
        cache = list(kept)
        text = begin
        for i in range(tokens):
            text = model(text, cache, prefix + i).argmax(-1)
        return text

    return step


def speculation(on: Machine, fault: bool) -> Step:
    """Drafted tokens are accepted one by one on the host; mended by counting them on the device."""
    draft = Decoder(1, on.size(256, 32), on.size(8192, 100)).to(on.device, on.half).eval()
    model = Decoder(on.size(6, 2), on.size(1024, 64), on.size(8192, 100)).to(on.device, on.half).eval()
    begin = torch.randint(0, 100, (8, on.size(256, 16)), device=on.device)

    @torch.no_grad()
    def step():
        text = begin
        for _ in range(4):
            text = torch.cat((text, draft(text[:, -32:]).argmax(-1)), dim=1)
        said = model(text).argmax(-1)
        drafted = text[:, -4:]
        if not fault:
            return (drafted == said).long().cumprod(1).sum(1)
        accepted = []
        for row in range(len(drafted)):
            count = 0
            for i in range(4):
                count += int(drafted[row, i].item() == said[row, 0].item())
            accepted.append(count)
        return accepted

    return step


def padding(on: Machine, fault: bool) -> Step:
    """Every sentence padded to the longest allowed; mended by batches of sentences of one length."""
    longest = on.size(1024, 128)
    model = Gpt(4, on.size(768, 64), on.size(12, 1), on.size(8192, 100), Block).to(on.device)
    tokens = torch.randint(1, 100, (on.size(16, 4), longest + 1), device=on.device)
    tokens[:, longest // 4 :] = 0
    tokens = tokens if fault else tokens[:, : longest // 4 + 1].contiguous()

    def loss_of():
        with on.autocast():
            scores = model(tokens[:, :-1])
            return functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "llm-attention-by-hand": Program(
        lambda on, fault: language(on, PlainAttention if fault else FusedAttention), ("attention-unfused",)
    ),
    "llm-mask-as-tensor": Program(
        lambda on, fault: language(on, MaskedAttention if fault else Block, length=2048, batch=4), ("attention-mask",)
    ),
    "llm-padding": Program(padding, ("padding",)),
    "lora-gradients-of-the-base": Program(lora, ("unused-gradients",)),
    "generate-no-cache-short": Program(
        lambda on, fault: generation(on, cached=not fault, prefix=512, tokens=8, batch=32, layers=4),
        ("recomputed-prefix",),
    ),
    "generate-no-cache-long": Program(
        lambda on, fault: generation(on, cached=not fault, prefix=3000, tokens=4, batch=8), ("recomputed-prefix",)
    ),
    "generate-cache-by-cat": Program(growing_cache, ("growing-input", "dominant-operator"), near=("layout-copies",)),
    "speculative-accept-on-host": Program(speculation, ("host-sync",)),
}
