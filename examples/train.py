"""Trains a small transformer on the CPU: the program that `make demo` and the docs record.

Usage:
    python examples/train.py                          # plain
    firelane record -- python examples/train.py       # recorded, without a change to this file
    python examples/train.py --profile run.lane       # records itself
"""

import argparse
import contextlib

import torch
from torch import nn

VOCABULARY, WIDTH, LENGTH, BATCH = 512, 128, 64, 16


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(tokens)))


class Sequences(torch.utils.data.Dataset):
    """Each token is the previous one times 5 plus 7: easy to learn."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        tokens = [index % VOCABULARY]
        for _ in range(LENGTH):
            tokens.append((tokens[-1] * 5 + 7) % VOCABULARY)
        return torch.tensor(tokens)


def profiler(path: str | None):
    if path is None:
        return contextlib.nullcontext()
    from firelane.profiler import profile, schedule

    return profile(schedule=schedule(wait=3, warmup=1, active=5, repeat=1), record_shapes=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--profile", metavar="FILE", help="record steps 4 to 8 into a .lane file")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Sequences(), batch_size=BATCH, shuffle=True)
    with profiler(arguments.profile) as prof:
        for _, tokens in zip(range(arguments.steps), loader, strict=False):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if prof is not None:
                prof.step()
    print(f"loss after {arguments.steps} steps: {loss.item():.3f}")
    if prof is not None:
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
        prof.save(arguments.profile)


if __name__ == "__main__":
    main()
