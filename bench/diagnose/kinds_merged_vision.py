"""Vision programs of the merged test (library.py, MERGED), each with one planted fault and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import pictures, stack, to_device
from kinds_next import perceptron


def boxes_one_by_one(masks):
    """The smallest box around each mask: left, top, right, bottom."""
    boxes = torch.zeros(len(masks), 4, device=masks.device)
    for place, mask in enumerate(masks):
        y, x = torch.where(mask)
        boxes[place] = torch.stack((x.min(), y.min(), x.max(), y.max()))
    return boxes


def boxes_together(masks):
    ends = []
    for lines in (masks.any(1), masks.any(2)):
        number = lines.to(torch.uint8)
        ends.append((number.argmax(1), lines.shape[1] - 1 - number.flip(1).argmax(1)))
    (left, right), (top, bottom) = ends
    return torch.stack((left, top, right, bottom), dim=1).float()


def instances(on: Machine, fault: bool) -> Step:
    """Objects are cut out: their masks are mixed from prototypes, and a box is put around each."""
    width, count, side = on.size(128, 6), on.size(32, 2), on.size(256, 64)
    model = to_device(nn.Sequential(*stack(3, width, width, width, 32)), on).to(on.half).eval()
    images = pictures(on, count, side).to(on.half)
    mixes = torch.randn(count, on.size(2, 24), 32, device=on.device, dtype=on.half)
    boxes_of = boxes_one_by_one if fault else boxes_together

    @torch.inference_mode()
    def step():
        scores = torch.einsum("nkp,nphw->nkhw", mixes, model(images)).flatten(0, 1)
        return boxes_of(scores > scores.mean((1, 2), keepdim=True))

    return step


def dice_of_numbers(shares, labels, classes: int):
    """How well the shares of classes cover the labels; labels become 64-bit zeros and ones, and then floats."""
    truth = functional.one_hot(labels, classes).permute(0, 3, 1, 2).float()
    return 2 * (shares * truth).sum((0, 2, 3)) / (shares.sum((0, 2, 3)) + truth.sum((0, 2, 3)) + 1)


def dice_of_masks(shares, labels, classes: int):
    truth = labels[:, None] == torch.arange(classes, device=labels.device)[:, None, None]
    covered = torch.where(truth, shares, 0).sum((0, 2, 3))
    return 2 * covered / (shares.sum((0, 2, 3)) + truth.sum((0, 2, 3)) + 1)


def organs(on: Machine, fault: bool) -> Step:
    """Slices of scans are divided into many organs, by a Dice loss."""
    width, classes, count, side = on.size(64, 4), on.size(104, 16), on.size(12, 2), on.size(320, 32)
    model = to_device(nn.Sequential(*stack(3, width, norm=False), nn.Conv2d(width, classes, 1)), on)
    scans = pictures(on, count, side)
    labels = torch.randint(0, classes, (count, side, side), device=on.device)
    dice = dice_of_numbers if fault else dice_of_masks

    def loss_of():
        with on.autocast():
            scores = model(scans)
        return 1 - dice(scores.float().softmax(1), labels, classes).mean()

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


def confusion_by_comparing(found, truth, classes: int):
    """How often each class was taken for each other: every pair of classes is compared with every sample."""
    names = torch.arange(classes, device=found.device)
    return ((found == names[:, None]) & (truth == names[:, None, None])).sum(2)


def confusion_by_counting(found, truth, classes: int):
    return torch.bincount(truth * classes + found, minlength=classes**2).view(classes, classes)


def validated(on: Machine, fault: bool) -> Step:
    """A classifier of many classes is validated with a confusion matrix."""
    classes, width, count = on.size(1000, 80), on.size(8192, 256), on.size(2048, 256)
    model = perceptron(on, on.size(1024, 64), width, width, width, width, classes).to(on.half).eval()
    features = torch.randn(count, on.size(1024, 64), device=on.device, dtype=on.half)
    truth = torch.randint(0, classes, (count,), device=on.device)
    confusion = confusion_by_comparing if fault else confusion_by_counting
    total = torch.zeros(classes, classes, dtype=torch.int64, device=on.device)

    @torch.inference_mode()
    def step():
        total.add_(confusion(model(features).argmax(1), truth, classes))

    return step


def warped_by_gathers(x, flow):
    """Takes each pixel of x (N, C, H, W) at the place that flow (N, 2, H, W: right, down) points to."""
    _, channels, height, width = x.shape
    right = (torch.arange(width, device=x.device) + flow[:, 0]).clamp(0, width - 1)
    down = (torch.arange(height, device=x.device)[:, None] + flow[:, 1]).clamp(0, height - 1)
    left, top = right.floor().clamp(max=width - 2), down.floor().clamp(max=height - 2)
    across, along = right - left, down - top
    corner = (top * width + left).long()

    def pixels(offset: int):
        places = (corner + offset).flatten(1)[:, None].expand(-1, channels, -1)
        return x.flatten(2).gather(2, places).view_as(x)

    above = pixels(0) * (1 - across)[:, None] + pixels(1) * across[:, None]
    below = pixels(width) * (1 - across)[:, None] + pixels(width + 1) * across[:, None]
    return above * (1 - along)[:, None] + below * along[:, None]


def warped_by_grid(x, flow):
    height, width = x.shape[2:]
    right = torch.arange(width, device=x.device) + flow[:, 0]
    down = torch.arange(height, device=x.device)[:, None] + flow[:, 1]
    grid = torch.stack((right / (width - 1), down / (height - 1)), dim=-1) * 2 - 1
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=True)


def flowing(on: Machine, fault: bool) -> Step:
    """Features of the next frame are moved back by a flow, and compared with those of this one."""
    width, count, side = on.size(64, 12), on.size(16, 2), on.size(256, 56)
    model = nn.Sequential(*stack(3, width, width)).to(on.device)
    images = torch.randn(2, count, 3, side, side, device=on.device)
    flow = 4 * torch.randn(count, 2, side, side, device=on.device)
    warped = warped_by_gathers if fault else warped_by_grid

    def loss_of():
        with on.autocast():
            now, then = model(images[0]), model(images[1])
        return functional.l1_loss(warped(then.float(), flow), now.float())

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


def patches_by_slices(x, size: int, stride: int):
    """Squares that overlap: (N, squares, C, size, size)."""
    rows, columns = (range(0, length - size + 1, stride) for length in x.shape[2:])
    return torch.stack([x[:, :, i : i + size, j : j + size] for i in rows for j in columns], dim=1)


def patches_by_unfold(x, size: int, stride: int):
    windows = x.unfold(2, size, stride).unfold(3, size, stride)
    return windows.permute(0, 2, 3, 1, 4, 5).flatten(1, 2)


def described(on: Machine, fault: bool) -> Step:
    """Squares of a feature map get descriptors, which are compared between two views."""
    width, count, side, size = on.size(64, 12), on.size(16, 2), on.size(104, 40), on.size(20, 12)
    stride = on.size(12, 4)
    model = to_device(nn.Sequential(*stack(3, width, 2 * width, width, norm=False)), on)
    head = nn.Linear(width * size**2, on.size(64, 16)).to(on.device)
    views = pictures(on, 2 * count, side)
    patches = patches_by_slices if fault else patches_by_unfold

    def loss_of():
        with on.autocast():
            squares = head(patches(model(views), size, stride).flatten(2))
            a, b = functional.normalize(squares.float(), dim=-1).view(2, -1, squares.shape[-1])
        return functional.mse_loss(a, b)

    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01, foreach=True)
    return training(loss_of, optimizer)


class SwishByHand(torch.autograd.Function):
    """x sigmoid(x), which keeps its input only."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        share = torch.sigmoid(x)
        return gradient * (share * (1 + x * (1 - share)))


class Swish(nn.Module):
    def forward(self, x):
        return SwishByHand.apply(x)


def efficient(on: Machine, fault: bool) -> Step:
    """Images are classified by convolutions with the Swish activation."""
    width, layers = on.size(96, 8), []
    for before in (3, *[width] * 5):
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), Swish() if fault else nn.SiLU()]
    model = to_device(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)), on)
    images = pictures(on, on.size(32, 2), on.size(160, 72))
    labels = torch.randint(0, 100, (len(images),), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, foreach=True))


PROGRAMS = {
    "masks-boxed-one-by-one": Program(
        instances,
        ("repeated-operators", "host-sync"),
        near=("launch-overhead", "dominant-operator"),
        where=("aten::nonzero", "aten::where"),
        says="boxes around masks in a Python loop, where each mask waits for the list of its pixels; any and argmax of "
        "rows and columns do all masks at once",
    ),
    "dice-through-64-bit-labels": Program(
        organs,
        ("wide-labels", "dtype-ping-pong"),
        near=("layout-copies", "pointwise-unfused", "memory-spike", "dominant-operator"),
        where=("aten::one_hot", "aten::scatter_"),
        says="one_hot writes eight bytes for each class of each pixel, which become floats in another layout; compare "
        "labels with the classes",
    ),
    "confusion-by-comparing-all-pairs": Program(
        validated,
        ("broadcast-comparison", "broadcast-product"),
        near=("dominant-operator", "pointwise-unfused", "memory-spike"),
        where=("aten::bitwise_and", "aten::__and__", "aten::sum"),
        says="a confusion matrix compares every pair of classes with every sample; bincount of pairs counts them",
    ),
    "pixels-warped-by-four-gathers": Program(
        flowing,
        ("composed-operator", "pointwise-unfused"),
        near=("dominant-operator", "repeated-operators", "memory-spike", "layout-copies", "channels-first"),
        where=("aten::gather", "aten::scatter_add"),
        says="bilinear sampling by hand: four gathers, their weights, and four scatters backward; grid_sample is one "
        "kernel each way",
    ),
    "patches-sliced-from-features": Program(
        described,
        ("repeated-operators",),
        near=("launch-overhead", "dominant-operator"),
        where=("aten::slice_backward", "SliceBackward"),
        says="squares are sliced out in a Python loop: the gradient of each slice is a feature map of zeros, and all "
        "are added; unfold",
    ),
    "swish-as-autograd-function": Program(
        efficient,
        ("pointwise-unfused",),
        near=("dominant-operator", "memory-spike"),
        where=("aten::sigmoid", "SwishByHand"),
        says="an activation as an autograd function of its own to save memory: eight pointwise operators where "
        "silu has two, and as little memory",
    ),
}
