"""Records lines.lane: a small model that trains on a CPU, with a penalty that goes through rows one by one.

firelane record --steps 2 -o lines.lane -- python make_lines_lane.py    # in this folder
"""

import itertools

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def smoothness(x):
    """How much neighbouring rows differ, a pair of rows at a time."""
    total = 0.0
    for before, after in itertools.pairwise(x):
        total = total + (after - before).square().mean()
    return total / len(x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(Block(64), Block(64), nn.Linear(64, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(60):
        x, target = torch.randn(128, 64), torch.randn(128, 16)
        y = model(x)
        loss = nn.functional.mse_loss(y, target) + 0.1 * smoothness(y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
