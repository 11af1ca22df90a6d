#!/usr/bin/env python3
"""Whether `firelane compare` names a planted difference first: programs as they are and with one thing changed.

    python bench/compare_planted.py record FOLDER [--firelane build/release/firelane] [--only vit]
    python bench/compare_planted.py score FOLDER [--write]
    python bench/compare_planted.py run PROGRAM PLANT           (what `record` records)

The programs are small on a CPU and of a size that keeps the GPU busy where there is one. `score` asks for the first
reason to name what was planted, and for the parts to add up to the difference to the nanosecond.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import readme

ROOT = Path(__file__).resolve().parents[1]
WAIT = 30  # steps before recording: a host that has just begun is slow
STEPS = WAIT + 12

# What was planted, and what the first reason has to say about it: one of these texts for each program.
SLOWER = {
    "vit": ("attention", "softmax", "bmm"),
    "unet": ("convolution kernels", "conv"),
    "ranker": ("matmul", "mm"),
}
PLANTS = {
    "slower kernel": None,
    "more launches": ("launches a step instead of", "operators a step instead of", "is new: 400 a step"),
    "fp32 instead of bf16": ("instead of bf16", "fp32", "float"),
    "a sync": ("synchronizing call",),
    "slower loader": ("waiting for input",),
    "larger memory": ("peak memory",),
}


# No faults, but what matching has to see through (`record --matching`, for reading: nothing is scored).
OTHERWISE_THE_SAME = ("renamed modules", "an added layer", "double batch", "compiled", "torch.profiler")


SLOWER_ON_CPU = {**SLOWER, "vit": ("mlp",)}


def words_for(program: str, plant: str, on_gpu: bool) -> tuple[str, ...]:
    return PLANTS[plant] or (SLOWER if on_gpu else SLOWER_ON_CPU)[program]


# Programs -------------------------------------------------------------------------------------------------------------


def prepare(program: str, plant: str) -> tuple[Callable[[], None], Iterable[Any]]:
    """A step of the program, and the loader that says how often."""
    # Some virtual machines announce AMX and do not have it: bf16 on the CPU then dies of an illegal instruction.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    on_gpu = torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    slower = plant == "slower kernel"
    torch.backends.cudnn.allow_tf32 = plant != "fp32 instead of bf16"

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            b, t, c = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            if slower and on_gpu:  # another, slower kernel than torch would take; on a CPU the others are faster
                with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
                    y = F.scaled_dot_product_attention(q, k, v)
            else:
                y = F.scaled_dot_product_attention(q, k, v)
            return self.out(y.transpose(1, 2).reshape(b, t, c))

    class Block(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.attention = Attention(width, heads)
            inner = (12 if slower and not on_gpu else 4) * width
            self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.attention(self.norms[0](x))
            return x + self.mlp(self.norms[1](x))

    class Vit(nn.Module):
        def __init__(self, width: int, depth: int) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, width, 16, 16)
            blocks = nn.ModuleList(Block(width, width // 64) for _ in range(depth))
            self.name = "encoder" if plant == "renamed modules" else "blocks"
            setattr(self, self.name, blocks)
            self.head = nn.Linear(width, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.patch(x).flatten(2).transpose(1, 2)
            for block in getattr(self, self.name):
                x = seen(block(x))
            return self.head(x.mean(1))

    class Unet(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            wide = 9 if slower else 3  # one layer looks further
            self.down = nn.ModuleList(
                nn.Sequential(nn.Conv2d(a, b, k, padding=k // 2), nn.BatchNorm2d(b), nn.SiLU())
                for a, b, k in ((3, width, 3), (width, 2 * width, wide), (2 * width, 4 * width, 3))
            )
            self.up = nn.ModuleList(
                nn.ConvTranspose2d(a, b, 2, 2) for a, b in ((4 * width, 2 * width), (2 * width, width))
            )
            self.head = nn.Conv2d(width, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = []
            for layer in self.down:
                x = seen(layer(x))
                kept.append(x)
                x = F.avg_pool2d(x, 2)
            for layer, skip in zip(self.up, reversed(kept[:-1]), strict=True):
                x = F.interpolate(layer(x), skip.shape[2:]) + skip
            return self.head(x).mean((2, 3))

    class Ranker(nn.Module):
        def __init__(self, rows: int, width: int) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(rows, 64, mode="sum") for _ in range(8))
            inner = 3 * width if slower else width
            self.mlp = nn.Sequential(
                nn.Linear(8 * 64, inner), nn.ReLU(), nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, 1)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.cat([table(x[:, i]) for i, table in enumerate(self.tables)], 1)
            for layer in self.mlp:
                x = seen(layer(x))
            return x

    def seen(x: torch.Tensor) -> torch.Tensor:
        if plant == "a sync" and float(x.detach().abs().amax()) > 1e9:
            raise SystemExit("diverged")
        return x

    batch = {"vit": (80, 4), "unet": (96, 2), "ranker": (32768, 128)}[program][0 if on_gpu else 1]
    batch *= 2 if plant == "double batch" else 1
    shape = {"vit": (3, 320, 320) if on_gpu else (3, 128, 128), "unet": (3, 128, 128) if on_gpu else (3, 32, 32)}.get(
        program
    )

    class Data(Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return STEPS

        def __getitem__(self, index: int) -> torch.Tensor:
            if plant == "slower loader":
                time.sleep(0.03)
            return torch.tensor(index)

    layers = (8 if on_gpu else 3) + (plant == "an added layer")
    model: nn.Module = {
        "vit": lambda: Vit(384 if on_gpu else 128, layers),
        "unet": lambda: Unet(64 if on_gpu else 8),
        "ranker": lambda: Ranker(100_000 if on_gpu else 1000, 4096 if on_gpu else 128),
    }[program]().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=on_gpu or None)
    inputs = (
        torch.randint(0, 1000, (batch, 8, 4), device=device)
        if shape is None
        else torch.randn(batch, *shape, device=device)
    )
    called: Any = torch.compile(model) if plant == "compiled" else model

    def step() -> None:
        scratch = torch.empty(1 << 28, dtype=torch.float32, device=device) if plant == "larger memory" else None
        with torch.autocast(device, torch.bfloat16, enabled=plant != "fp32 instead of bf16"):
            loss = called(inputs).float().square().mean()
        if plant == "more launches":
            for _ in range(400):
                loss = loss + 1e-6
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del scratch

    return step, DataLoader(Data(), batch_size=None)


def run(program: str, plant: str) -> None:
    step, loader = prepare(program, plant)
    if plant == "torch.profiler":
        from torch.profiler import profile, schedule

        with profile(schedule=schedule(wait=WAIT, warmup=1, active=4), record_shapes=True, with_modules=True) as prof:
            for _ in loader:
                step()
                prof.step()
        prof.export_chrome_trace(os.environ["PLANTED_OUTPUT"])
        return
    for _ in loader:
        step()


def record_here(file: Path, program: str, plant: str) -> None:
    """As `record` does, without a process of its own: where starting one takes longer than the program."""
    import gc

    import torch

    from firelane.profiler import profile, schedule

    step, loader = prepare(program, plant)
    plan = schedule(wait=WAIT, warmup=1, active=4, repeat=1)
    with profile(schedule=plan, record_shapes=True, profile_memory=True, with_modules=True) as prof:
        for _ in loader:
            step()
            prof.step()
    prof.save(str(file))
    del step, loader, prof
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# Recording and scoring ------------------------------------------------------------------------------------------------


def file_of(folder: Path, program: str, plant: str) -> Path:
    return folder / f"{program}-{plant.replace(' ', '_')}.lane"


def record(folder: Path, firelane: Path | None, programs: list[str], plants: tuple[str, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        for plant in plants:
            file = file_of(folder, program, plant)
            if file.exists():
                continue
            begin = time.perf_counter()
            plan = [
                "--wait",
                str(WAIT),
                "--steps",
                "4",
                "--after",
                "6",
                "--shapes",
                "--memory",
                "--modules",
                "--end",
                "--quiet",
            ]
            own = [sys.executable, str(Path(__file__).resolve()), "run", program, plant]
            if firelane is None:
                record_here(file, program, plant)
            elif plant == "torch.profiler":
                env = {**os.environ, "PLANTED_OUTPUT": str(file.with_suffix(".json.gz"))}
                subprocess.run(own, check=True, env=env)
            else:
                subprocess.run([firelane, "record", *plan, "-o", file, "--", *own], check=True)
            print(f"{file.name}: {time.perf_counter() - begin:.1f} s", flush=True)


def score(folder: Path, firelane: Path) -> tuple[str, bool]:
    rows, all_first = [], True
    for program in SLOWER:
        before = file_of(folder, program, "none")
        if not before.exists():
            continue
        for plant in PLANTS:
            after = file_of(folder, program, plant)
            done = subprocess.run(
                [firelane, "compare", "--json", before, after], capture_output=True, text=True, check=True
            )
            answer = json.loads(done.stdout)
            on_gpu = any(row["figure"] == "gpu_time" for row in answer["figures"])
            if plant == "a sync" and not on_gpu:
                continue  # a CPU does not wait for itself
            parts = {row["part"]: row["change_ns"] for row in answer["parts"]}
            whole = parts.pop("all")
            adds_up = sum(parts.values()) == whole == answer["step_after_ns"] - answer["step_before_ns"]
            reasons = [row["reason"] for row in answer["reasons"]]
            place = next(
                (i for i, text in enumerate(reasons, 1) if any(w in text for w in words_for(program, plant, on_gpu))), 0
            )
            all_first &= place == 1 and adds_up
            step = f"{answer['step_before_ns'] / 1e6:.2f} to {answer['step_after_ns'] / 1e6:.2f} ms"
            first = reasons[0] if reasons else "-"
            rows.append([program, plant, step, str(place or "not named"), "yes" if adds_up else "NO", first])
    head = ["program", "planted", "step", "named", "parts add up", "first reason"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|--:|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n", all_first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "record", "score"])
    parser.add_argument("first", help="FOLDER, or PROGRAM of run")
    parser.add_argument("plant", nargs="?", default="none")
    parser.add_argument("--firelane", type=Path, default=ROOT / "build" / "release" / "firelane")
    parser.add_argument("--in-process", action="store_true", help="record all in one process, with firelane.profiler")
    parser.add_argument("--matching", action="store_true", help="record what is otherwise the same, instead of faults")
    parser.add_argument("--only", choices=list(SLOWER), help="one program")
    parser.add_argument(
        "--write", metavar="MARK", help="put the table into bench/README.md, between marks of that name"
    )
    args = parser.parse_args()
    if args.what == "run":
        return run(args.first, args.plant)
    folder = Path(args.first)
    if args.what == "record":
        plants = OTHERWISE_THE_SAME if args.matching else ("none", *PLANTS)
        return record(
            folder, None if args.in_process else args.firelane, [args.only] if args.only else list(SLOWER), plants
        )
    text, all_first = score(folder, args.firelane)
    print(text)
    if args.write:
        readme.write(args.write, text)
    return None if all_first else sys.exit(1)


if __name__ == "__main__":
    main()
