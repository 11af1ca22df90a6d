#!/usr/bin/env python3
"""Records light and full steps of GPU programs into FOLDER/NAME.lane, with the recorder alone.

    tests/gpu/record_light.py FOLDER

Four light steps, then four full ones, of a program that is the same in each step, of one whose shapes depend on the
data, and of programs of cuda_programs.py. `firelane info NAME.lane@light` says how much of the light steps' work has an
op; bench/light_ops compares such ops with those that full steps have.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from cuda_programs import PROGRAMS, train_step
from record_both import load_recorder


def changing() -> Callable[[], object]:
    """Shapes and the number of layers depend on the data."""
    model = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    draw = random.Random(3)

    def step() -> None:
        x = torch.randn(draw.randrange(16, 400), 256, device="cuda")
        for layer in model[: draw.randrange(4, 8)]:
            x = torch.relu(layer(x))
        x.sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def record(native, run: Callable[[], object], path: Path) -> None:
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    options = native.RecordOptions(
        cuda=True, shapes=True, modules=True, start_light=True, start_paused=True, output=str(path), keep=True
    )
    recorder = native.start(options)
    recorder.resume_device()
    recorder.resume()
    timer = native.StepTimer(False)
    for number in range(8):
        if number == 4:
            recorder.begin_full()
        timer.step(number, "light" if number < 4 else "recorded")
        step = native.begin_range(f"ProfilerStep#{number}")
        run()
        native.end_range(step)
    timer.finish()
    torch.cuda.synchronize()
    print(path.name, [f"{phase} {ns / 1e6:.2f} ms" for _, phase, ns in timer.samples])
    recorder.add_steps(timer)
    recorder.stop()
    if recorder.losses:
        print(recorder.losses)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    native = load_recorder()
    programs: dict[str, Callable[[], Callable[[], object]]] = {
        "gpt": lambda: train_step(8, width=512, batch=16, length=512, foreach=None),
        "gpt_tensors": lambda: train_step(8),
        "changing": changing,
    }
    for name, make in programs.items():
        record(native, make(), folder / f"{name}.lane")
    for name in ("streams", "copies", "graph", "decode", "threads"):
        try:
            record(native, PROGRAMS[name](), folder / f"{name}.lane")
        except Exception as error:
            print(name, "failed:", error)


if __name__ == "__main__":
    main()
