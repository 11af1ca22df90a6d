"""Small CUDA programs that cover what a GPU recorder must get right.

PROGRAMS names them. Each is a function that returns a function without arguments, which does the same work at every
call.
"""

from __future__ import annotations

import contextlib
import threading

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers: int, width: int = 256, heads: int = 8, words: int = 1024):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)))


def train_step(layers: int, width: int = 256, batch: int = 4, length: int = 128, foreach: bool | None = False):
    """A launch-bound bf16 training step; `foreach=None` is default AdamW, which updates all tensors together."""
    model = Gpt(layers, width).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=foreach)
    tokens = torch.randint(0, 1024, (batch, length + 1), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(tokens[:, :-1])
        F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def train():
    step = train_step(2)

    def run():
        for i in range(3):
            with torch.profiler.record_function(f"ProfilerStep#{i}"):
                step()

    return run


def streams():
    a, b = torch.rand(1024, 1024, device="cuda"), torch.rand(1024, 1024, device="cuda")
    side = torch.cuda.Stream()

    def run():
        for _ in range(10):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                c = a @ b
            d = b @ a
            event = torch.cuda.Event()
            event.record(side)
            torch.cuda.current_stream().wait_event(event)
            (c + d).sum()
        torch.cuda.current_stream().synchronize()

    return run


def copies():
    pinned, pageable = torch.rand(1 << 20).pin_memory(), torch.rand(1 << 20)

    def run():
        for _ in range(5):
            x = pinned.to("cuda", non_blocking=True)
            y = pageable.to("cuda")
            z = x.clone()
            z.zero_()
            (y + z).to("cpu")

    return run


def graph():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    x = torch.rand(64, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(captured):
        y = model(x)

    def run():
        for _ in range(5):
            captured.replay()
        y.sum()

    return run


def threads():
    data = [torch.rand(256, 256, device="cuda") for _ in range(4)]

    def work(x):
        for _ in range(20):
            (x @ x).relu_()

    def run():
        team = [threading.Thread(target=work, args=(x,)) for x in data]
        for t in team:
            t.start()
        for t in team:
            t.join()

    return run


def decode():
    model = Gpt(2).cuda().bfloat16().eval()
    tokens = torch.randint(0, 1024, (1, 8), device="cuda")

    def run():
        seen = tokens
        with torch.no_grad():
            for _ in range(8):
                seen = torch.cat([seen, model(seen)[:, -1].argmax(-1, keepdim=True)], dim=1)
        seen.cpu()

    return run


def compiled():
    @torch.compile
    def fused(x, y):
        return (x.sin() * y + x.relu()).sum(dim=-1)

    x, y = torch.rand(512, 512, device="cuda"), torch.rand(512, 512, device="cuda")
    fused(x, y)

    def run():
        for _ in range(5):
            fused(x, y)

    return run


def out_of_memory():
    def run():
        with contextlib.suppress(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        torch.rand(1024, device="cuda").sum()

    return run


def workers():
    """DataLoader workers forked after CUDA was started."""
    data = torch.utils.data.TensorDataset(torch.rand(64, 16))

    def run():
        loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2)
        for (batch,) in loader:
            batch.to("cuda").sum()

    return run


PROGRAMS = {f.__name__: f for f in (train, streams, copies, graph, threads, decode, compiled, out_of_memory, workers)}
