"""Times programs without a profiler, then records them with torch.profiler: the true steps to compare verdicts with.

    python bench/diagnose/record_truth.py OUTPUT_FOLDER      # on a machine with an NVIDIA GPU

Writes one trace per program and set of options, and truth.json: for each trace the step time without a profiler, as the
median of the runs before and of those after the recording.
"""

import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = "cuda"
OPTIONS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"record_shapes": True, "profile_memory": True},
    "stacks": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    def attend(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, vocabulary=8192, block=Block):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[block(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def gpt_training(layers, width, batch, length, *, fused=True, item_every_step=False, pageable=False):
    model = Gpt(layers, width, width // 64).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
    data = torch.randint(0, 8192, (batch, length + 1))
    data = data if pageable else data.pin_memory()

    def step():
        tokens = data.to(DEVICE, non_blocking=not pageable)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if item_every_step:
            loss.item()

    return step


def convolution_training(batch):
    layers, channels = [], 3
    for width in (64, 128, 256, 512):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        channels = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).to(DEVICE)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(batch, 3, 128, 128, device=DEVICE).to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (batch,), device=DEVICE)

    def step():
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def decoding(layers, width, batch):
    model = Gpt(layers, width, width // 64).to(DEVICE).bfloat16().eval()
    token = torch.zeros(batch, 1, dtype=torch.long, device=DEVICE)

    def step():
        with torch.no_grad():
            for _ in range(4):
                token.copy_(model(token).argmax(-1))

    return step


PROGRAMS = {
    "gpt_small": lambda: gpt_training(6, 512, 8, 256),
    "gpt_large": lambda: gpt_training(12, 1024, 16, 512),
    "gpt_item": lambda: gpt_training(6, 768, 16, 512, item_every_step=True),
    "gpt_foreach": lambda: gpt_training(6, 768, 16, 512, fused=False),
    "conv_large": lambda: convolution_training(256),
    "decode": lambda: decoding(12, 1024, 4),
}


def timed(step, steps=20):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e9


def main():
    folder = sys.argv[1]
    wanted = sys.argv[2:] or list(PROGRAMS)
    truth = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "traces": {}}
    for name in wanted:
        step = PROGRAMS[name]()
        timed(step, 10)
        for options, arguments in OPTIONS.items():
            before = statistics.median(timed(step) for _ in range(3))
            path = f"{folder}/{name}.{options}.json.gz"
            with profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                schedule=schedule(wait=1, warmup=2, active=3),
                on_trace_ready=lambda p, path=path: p.export_chrome_trace(path),
                **arguments,
            ) as prof:
                for _ in range(6):
                    step()
                    prof.step()
                torch.cuda.synchronize()
            after = statistics.median(timed(step) for _ in range(3))
            truth["traces"][f"{name}.{options}"] = {"before_ns": before, "after_ns": after}
            print(name, options, round(before / 1e6, 3), round(after / 1e6, 3), flush=True)
    with open(f"{folder}/truth.json", "w") as file:
        json.dump(truth, file, indent=1)


if __name__ == "__main__":
    main()
