"""Programs with one planted fault each, and the same without it: recorded, and timed without a profiler.

    python bench/diagnose/record_faults.py OUTPUT_FOLDER      # on a machine with an NVIDIA GPU

Writes FAULT.faulty.json.gz, FAULT.fixed.json.gz and faults.json, which bench/diagnose/score.py reads.
"""

import gc
import json
import statistics
import sys
import time

import torch
from record_truth import Gpt, timed
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

DEVICE = "cuda"


class Tokens(Dataset):
    def __init__(self, length, seconds_per_item):
        self.length, self.seconds = length, seconds_per_item

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.seconds:
            time.sleep(self.seconds)
        return torch.randint(0, 8192, (self.length + 1,))


def training(
    *,
    width=768,
    batch=16,
    length=512,
    item=False,
    single_tensor=False,
    fills=False,
    pageable=False,
    loader=None,
    garbage=False,
    synchronize=False,
    large_input=False,
):
    """A GPT's training step; each argument plants one fault."""
    model = Gpt(6, width, width // 64).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"foreach": False} if single_tensor else {"fused": True}))
    fixed = torch.randint(0, 8192, (batch, length + 1))
    fixed = fixed if pageable else fixed.pin_memory()
    extra = torch.randn(16, 1024, 1024) if large_input else None
    if extra is not None and not pageable:
        extra = extra.pin_memory()
    batches = iter(loader) if loader is not None else None
    cycles = []

    def step():
        data = next(batches) if batches is not None else fixed
        tokens = data.to(DEVICE, non_blocking=not pageable)
        if extra is not None:
            extra.to(DEVICE, non_blocking=not pageable)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        if synchronize:
            torch.cuda.synchronize()
        optimizer.step()
        optimizer.zero_grad(set_to_none=not fills)
        if item:
            for _ in range(4):
                loss.item()
        if garbage:
            cycles.append([list(range(10)) for _ in range(2000)])
            gc.collect()

    return step


def loader(workers, seconds):
    return DataLoader(Tokens(512, seconds), batch_size=16, num_workers=workers, pin_memory=True,
                      **({"persistent_workers": True, "prefetch_factor": 4} if workers else {}))


# id of the finding that must come first: (with the fault, without it)
FAULTS = {
    "input-bound": (lambda: training(loader=loader(0, 0.002)), lambda: training(loader=loader(8, 0.002))),
    "host-sync": (lambda: training(width=1024, synchronize=True, item=True), lambda: training(width=1024)),
    "pageable-copies": (lambda: training(width=1024, pageable=True, large_input=True), lambda: training(width=1024, large_input=True)),
    "single-tensor-optimizer": (lambda: training(single_tensor=True), lambda: training()),
    "zero-grad-fills": (lambda: training(fills=True, batch=2, length=128), lambda: training(batch=2, length=128)),
    "launch-overhead": (lambda: training(width=256, batch=1, length=64), lambda: training(width=1024, batch=32)),
}


def record(step, path):
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=1, warmup=2, active=4),
        on_trace_ready=lambda p: p.export_chrome_trace(path),
    ) as prof:
        for _ in range(7):
            step()
            prof.step()
        torch.cuda.synchronize()


def main():
    folder = sys.argv[1]
    truth = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "faults": {}}
    for name, programs in FAULTS.items():
        entry = {}
        for kind, make in zip(("faulty", "fixed"), programs):
            step = make()
            timed(step, 10)
            entry[kind + "_ns"] = statistics.median(timed(step) for _ in range(5))
            record(step, f"{folder}/{name}.{kind}.json.gz")
        truth["faults"][name] = entry
        print(name, {k: round(v / 1e6, 2) for k, v in entry.items()}, flush=True)
    with open(f"{folder}/faults.json", "w") as file:
        json.dump(truth, file, indent=1)


if __name__ == "__main__":
    main()
