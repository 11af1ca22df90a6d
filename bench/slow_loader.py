"""A training program whose loader is too slow, for bench/tune.py and for trying `firelane tune` and `sweep`.

    python bench/slow_loader.py [--steps 200]

Each sample takes --load-ms to come (a disk or a network: the process waits), each step some --compute-ms of
arithmetic. As it is, nothing is loaded ahead. WORKERS and PREFETCH in the environment say otherwise, for a sweep.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class SlowDataset(Dataset[torch.Tensor]):
    def __init__(self, length: int, load_ms: float, uneven: bool) -> None:
        self.length, self.load_ms, self.uneven = length, load_ms, uneven

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        # Uneven: a few samples take long, as images of different sizes do, and only batches loaded ahead hide that.
        factor = (0.5 if index % 4 else 2.5) if self.uneven else 1.0
        time.sleep(self.load_ms * factor / 1e3)
        return torch.full((256,), float(index % 7))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--load-ms", type=float, default=8.0)
    parser.add_argument("--compute-ms", type=float, default=12.0)
    parser.add_argument("--uneven", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = SlowDataset(args.steps * args.batch_size, args.load_ms, args.uneven)
    workers = int(os.environ.get("WORKERS", "0"))
    ahead = int(os.environ["PREFETCH"]) if workers and "PREFETCH" in os.environ else None
    loader = DataLoader(data, batch_size=args.batch_size, num_workers=workers, prefetch_factor=ahead)
    weight = torch.randn(384, 384, device=device)
    for batch in loader:
        until = time.perf_counter() + args.compute_ms / 1e3
        optimizer.zero_grad()
        loss = model(batch.to(device)).square().mean()
        loss.backward()
        while time.perf_counter() < until:
            weight = torch.tanh(weight @ weight / 20)
        if device == "cuda":
            torch.cuda.synchronize()
        optimizer.step()


if __name__ == "__main__":
    main()
