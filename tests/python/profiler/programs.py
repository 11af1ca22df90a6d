"""Small programs of many kinds: each returns a function without arguments that does the same work at every call."""

import inspect
import threading

import torch
from torch import nn

# torch before 2.11 compares times as floats that are 250 ns apart: it gives some memory to the wrong op.
HAS_EXACT_MEMORY = "start_ns" in inspect.signature(torch.autograd.profiler_util.MemRecordsAcc.in_interval).parameters


def convolution_net():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 5)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(4, 3, 16, 16)

    def run():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), torch.tensor([0, 1, 2, 3])).backward()
        optimizer.step()

    return run


def transformer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, nhead=2, dim_feedforward=64, batch_first=True, dropout=0.0)
    net = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(2, 8, 32)

    def run():
        with torch.profiler.record_function("forward"):
            loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def double_backward():
    x = torch.randn(8, requires_grad=True)

    def run():
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        torch.autograd.grad(first.sum(), x)

    return run


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def custom_function():
    x = torch.randn(8, requires_grad=True)

    def run():
        x.grad = None
        Square.apply(x).sum().backward()

    return run


def torchscript():
    @torch.jit.script
    def f(x: torch.Tensor, n: int):
        for _ in range(n):
            x = torch.relu(x + 1) * 2
        return x

    x = torch.randn(4, 4)
    return lambda: f(x, 3)


def tensor_lists():
    xs = [torch.randn(2, 3) for _ in range(4)]

    def run():
        torch._foreach_add_(xs, 1.0)
        torch.cat(xs, dim=1).chunk(2)
        torch.stack(xs)[..., 0].to(torch.float64).cumsum(0)

    return run


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i))


def data_loader():
    def run():
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=2):
            batch.sum()

    return run


def data_loader_with_workers():
    def run():
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2):
            batch.sum()

    return run


def threads():
    x = torch.randn(16, 16)

    def work():
        for _ in range(3):
            torch.mm(x, x).relu()

    def run():
        both = [threading.Thread(target=work) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()

    return run


def compiled():
    @torch.compile
    def f(x):
        return torch.sin(x).add(1).sum()

    x = torch.randn(16)
    return lambda: f(x)
