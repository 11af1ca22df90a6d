"""What programs that hang under an always-on recording begin with: a training that has made 80 steps."""

import time

import torch

from firelane._always import run
from firelane._auto import Plan


def train(output, step_s, **options):
    """The recording, and the optimizer, whose step() is the next step."""
    always = run.Always(Plan(output=str(output), options={}), 0.5, 64 << 20, tick_s=0.02, quiet_s=0, **options)
    always.install_hooks()
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(80):
        net(torch.ones(2, 4)).sum().backward()
        time.sleep(step_s)
        optimizer.step()
    return always, optimizer
