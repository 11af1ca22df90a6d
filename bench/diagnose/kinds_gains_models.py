"""What the programs that gains are fitted with share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gpu_models import Machine, Step, training

Function = Callable[[torch.Tensor], torch.Tensor]


def adam(model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, **(more or {"fused": True}))


def trained(on: Machine, model: nn.Module, *shape: int, half: bool = True, **optimizer: Any) -> Step:
    """The mean square of what the model makes of noise, in bf16 or by autocast."""
    data = torch.randn(*shape, device=on.device, dtype=on.half if half else torch.float32)
    model = model.to(on.device, data.dtype)
    return training(lambda: model(data).float().square().mean(), adam(model, **optimizer))


class Apply(nn.Module):
    def __init__(self, function: Function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)
