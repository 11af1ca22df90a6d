"""Vision programs of the asked test (library.py, ASKED), each with one planted fault and mended."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training
from kinds_asked_models import Transformer, frozen, pictures, stack, to_device


def assigned(costs: np.ndarray) -> np.ndarray:
    """The query of each target (a column), cheapest first; no query is given twice."""
    costs = costs.copy()
    chosen = np.zeros(costs.shape[1], dtype=np.int64)
    for target in costs.min(axis=0).argsort():
        query = costs[:, target].argmin()
        chosen[target] = query
        costs[query] = np.inf
    return chosen


def detector(on: Machine, fault: bool) -> Step:
    """Queries of a detection transformer are matched to the targets of their own image on the host: the costs of all
    pairs of the batch are copied there, or only those of pairs within an image."""
    count, queries, targets, width = on.size(64, 2), on.size(600, 8), on.size(8, 3), on.size(512, 32)
    body = Transformer(width, on.size(8, 2), on.size(4, 1)).to(on.device)
    classify, place = nn.Linear(width, 91).to(on.device), nn.Linear(width, 4).to(on.device)
    seen = torch.randn(count, queries, width, device=on.device)
    labels = torch.randint(0, 91, (count, targets), device=on.device)
    boxes = torch.rand(count, targets, 4, device=on.device)
    rows = torch.arange(count, device=on.device)[:, None]
    own = torch.arange(count, device=on.device)

    def matched(scores, found):
        wanted = scores.flatten(0, 1).softmax(-1)[:, labels.flatten()]
        costs = torch.cdist(found.flatten(0, 1), boxes.flatten(0, 1), p=1) - wanted
        costs = costs.view(count, queries, count, targets)
        if fault:
            parts = [each[:, image] for image, each in enumerate(costs.cpu().numpy())]
        else:
            parts = list(costs[own, :, own].cpu().numpy())
        return torch.from_numpy(np.stack([assigned(each) for each in parts])).to(on.device)

    def loss_of():
        with on.autocast():
            x = body(seen)
            scores, found = classify(x).float(), place(x).float().sigmoid()
        with torch.no_grad():
            which = matched(scores, found)
        classes = functional.cross_entropy(scores[rows, which].flatten(0, 1), labels.flatten())
        return classes + functional.l1_loss(found[rows, which], boxes)

    parameters = [*body.parameters(), *classify.parameters(), *place.parameters()]
    return training(loss_of, torch.optim.AdamW(parameters, lr=1e-4, fused=True))


def bell(size: int, sigma: float) -> torch.Tensor:
    places = torch.arange(size) - size // 2
    weights = torch.exp(-0.5 * (places / sigma).square())
    return weights / weights.sum()


class Blur(nn.Module):
    """A Gaussian blur of images: with the square of all weights, or along rows and then along columns."""

    def __init__(self, size: int, sigma: float, square: bool):
        super().__init__()
        line = bell(size, sigma).expand(3, 1, 1, size).contiguous()
        self.register_buffer("line", line)
        self.register_buffer("area", line.mT @ line)
        self.pad, self.square = size // 2, square

    def forward(self, images):
        images = functional.pad(images, [self.pad] * 4, mode="reflect")
        if self.square:
            return functional.conv2d(images, self.area, groups=3)
        return functional.conv2d(functional.conv2d(images, self.line, groups=3), self.line.mT, groups=3)


def blurred(on: Machine, fault: bool) -> Step:
    """Two views of each image, blurred on the device, are to be told from those of others."""
    count, side = on.size(128, 4), on.size(160, 32)
    blur = Blur(on.size(31, 25), on.size(50, 40) / 10, square=fault).to(on.device)
    width = on.size(128, 16)
    model = to_device(
        nn.Sequential(*stack(3, width, stride=2), *stack(width, width, width), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        on,
    )
    images = torch.rand(count, 3, side, side, device=on.device)
    labels = torch.arange(count, device=on.device)

    def loss_of():
        with torch.no_grad():
            views = torch.cat((blur(images), blur(images.flip(-1)))).contiguous(memory_format=torch.channels_last)
        with on.autocast():
            left, right = functional.normalize(model(views), dim=1).chunk(2)
            return functional.cross_entropy(left @ right.T / 0.1, labels)

    return training(loss_of, torch.optim.SGD(model.parameters(), lr=0.01))


def style(on: Machine, fault: bool) -> Step:
    """Images take on the style of others: what the network says of those is computed in each step, or once."""
    count, side, width = on.size(24, 2), on.size(256, 32), on.size(64, 8)
    parts = [
        nn.Sequential(*stack(3, width, width)),
        nn.Sequential(nn.MaxPool2d(2), *stack(width, 2 * width, 2 * width)),
        nn.Sequential(nn.MaxPool2d(2), *stack(2 * width, 4 * width, 4 * width)),
    ]
    network = frozen(to_device(nn.ModuleList(parts), on))
    content, example = pictures(on, count, side), pictures(on, count, side)
    drawn = nn.Parameter(content.clone())

    def features(x) -> list[torch.Tensor]:
        seen = []
        with on.autocast():
            for part in network:
                x = part(x)
                seen.append(x)
        return seen

    def gram(x):
        flat = x.flatten(2)
        return flat @ flat.mT / flat.shape[-1]

    @torch.no_grad()
    def wanted():
        return [gram(each) for each in features(example)], features(content)[-1]

    once = None if fault else wanted()

    def loss_of():
        styles, shapes = once or wanted()
        seen = features(drawn)
        with on.autocast():
            off = sum(
                functional.mse_loss(gram(each).float(), like.float()) for each, like in zip(seen, styles, strict=True)
            )
        return off + functional.mse_loss(seen[-1].float(), shapes.float())

    return training(loss_of, torch.optim.Adam([drawn], lr=0.02, fused=True))


class Video(nn.Module):
    """A network for images looks at each frame, a recurrent one at what it says: frame by frame, or all at once."""

    def __init__(self, width: int, by_frame: bool):
        super().__init__()
        layers = stack(3, width, width, width, width, width, width, norm=False)
        self.image = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.time, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, 100)
        self.by_frame = by_frame

    def forward(self, clips):
        if self.by_frame:
            seen = torch.stack([self.image(clips[:, frame]) for frame in range(clips.shape[1])], dim=1)
        else:
            seen = self.image(clips.flatten(0, 1)).unflatten(0, clips.shape[:2])
        return self.head(self.time(seen)[0][:, -1])


def video(on: Machine, fault: bool) -> Step:
    """The action in a short clip."""
    count, frames, side = on.size(8, 2), on.size(32, 16), on.size(48, 8)
    model = to_device(Video(on.size(96, 8), by_frame=fault), on)
    clips = torch.randn(count, frames, side, side, 3, device=on.device).permute(0, 1, 4, 2, 3)  # channels_last
    labels = torch.randint(0, 100, (count,), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(clips), labels)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


def intersections(scores, labels, classes: int, as_shares: bool):
    """Pixels of each pair of a true and a chosen class. The largest score has the largest share, too."""
    chosen = scores.float().softmax(1).argmax(1) if as_shares else scores.argmax(1)
    pairs = (labels * classes + chosen).flatten()
    return torch.zeros(classes**2, device=pairs.device).index_add_(0, pairs, torch.ones_like(pairs, dtype=torch.float))


def segmented(on: Machine, fault: bool) -> Step:
    """A segmentation network is evaluated: scores become probabilities before the best class is chosen, or do not."""
    count, side, classes, width = on.size(16, 4), on.size(384, 64), on.size(150, 24), on.size(128, 8)
    model = to_device(
        nn.Sequential(*stack(3, width, width, stride=2), *stack(width, width, width), nn.Conv2d(width, classes, 1)),
        on,
    ).eval()
    images = pictures(on, count, side)
    labels = torch.randint(0, classes, (count, side, side), device=on.device)
    total = torch.zeros(classes**2, device=on.device)

    @torch.inference_mode()
    def step():
        with on.autocast():
            scores = functional.interpolate(model(images), size=(side, side), mode="bilinear")
        total.add_(intersections(scores, labels, classes, as_shares=fault))

    return step


PROGRAMS = {
    "matcher-copies-costs-of-other-images": Program(
        detector,
        ("exposed-copies", "pageable-copies", "host-sync"),
        near=("whole-copies", "host-compute", "host-code"),
        says="bipartite matching of a detector: the costs of every query with the targets of all images go to the "
        "host, where only those of the own image are read; take the blocks on the device and copy those",
    ),
    "augmentation-blurs-with-a-square-kernel": Program(
        blurred,
        ("dominant-operator", "separable-convolution"),
        near=("tensor-cores-unused", "fp32-matmul", "channels-first", "layout-copies", "cudnn-benchmark"),
        says="augmentation on the device: a Gaussian blur as one convolution with 961 weights a pixel, where one along "
        "rows and one along columns with 31 each give the same",
    ),
    "style-targets-computed-in-every-step": Program(
        style,
        ("repeated-inputs", "constant-work"),
        near=("repeated-operators", "dominant-operator"),
        says="style transfer: the features of the style and content images, which never change, are computed in every "
        "step; compute them once before the loop",
    ),
    "video-frame-by-frame": Program(
        video,
        ("launch-overhead", "small-batch", "repeated-operators", "device-underfilled"),
        near=("host-code", "layout-copies"),
        says="a clip's frames go through the image network in a Python loop; fold time into the batch",
    ),
    "classes-chosen-after-a-softmax": Program(
        segmented,
        ("order-preserving-work", "dominant-operator"),
        near=("pointwise-unfused", "dtype-ping-pong", "memory-spike", "fp32-matmul"),
        says="evaluation of a segmentation network: a softmax over all classes of all pixels in fp32 before argmax, "
        "which chooses the same without it",
    ),
}
