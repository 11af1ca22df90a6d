"""Programs on sequences that no rule has seen (library.py, UNSEEN), each with one planted fault and mended."""

from __future__ import annotations

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from gpu_models import Machine, Program, Step, training


class Translator(nn.Module):
    """The decoder of a translation model: attends to its own past and to what the encoder wrote."""

    def __init__(self, layers: int, width: int, words: int):
        super().__init__()
        self.heads = max(1, width // 64)
        self.embed = nn.Embedding(words, width)
        self.own, self.across, self.wide, self.narrow = (
            nn.ModuleList([nn.Linear(n * width, m * width) for _ in range(layers)])
            for n, m in ((1, 3), (1, 1), (1, 4), (4, 1))
        )
        self.norm = nn.LayerNorm(width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, word, past, source, at):
        """`past`: keys and values of each layer, filled up to `at`."""
        x = self.embed(word)
        for i, (keys, values) in enumerate(past):
            q, k, v = (self.split(each) for each in self.own[i](self.norm(x)).chunk(3, dim=-1))
            keys[:, :, at : at + 1], values[:, :, at : at + 1] = k, v
            y = functional.scaled_dot_product_attention(q, keys[:, :, : at + 1], values[:, :, : at + 1])
            x = x + y.transpose(1, 2).flatten(2)
            y = functional.scaled_dot_product_attention(self.split(self.across[i](self.norm(x))), source, source)
            x = x + y.transpose(1, 2).flatten(2)
            x = x + self.narrow[i](functional.relu(self.wide[i](self.norm(x))))
        return functional.linear(self.norm(x[:, -1]), self.embed.weight).log_softmax(-1)


Past = list[tuple[torch.Tensor, torch.Tensor]]


def chosen_on_host(scores: torch.Tensor, sums: torch.Tensor, beams: int) -> tuple[list[int], list[int], list[float]]:
    """The best continuations of each sentence, candidate by candidate."""
    rows, words, totals = [], [], []
    for sentence in range(len(scores) // beams):
        candidates = []
        for row in range(sentence * beams, (sentence + 1) * beams):
            best, which = scores[row].topk(beams)
            candidates += [(sums[row].item() + best[i].item(), row, int(which[i].item())) for i in range(beams)]
        for total, row, word in sorted(candidates, reverse=True)[:beams]:
            rows.append(row)
            words.append(word)
            totals.append(total)
    return rows, words, totals


def beam_search(on: Machine, fault: bool) -> Step:
    beams, sentences, begin, tokens = 4, on.size(4, 6), on.size(48, 16), on.size(3, 4)
    rows, layers, width = beams * sentences, on.size(4, 2), on.size(512, 64)
    model = Translator(layers, width, on.size(8192, 500)).to(on.device, on.half).eval()
    shape = (rows, model.heads, begin + tokens, width // model.heads)
    first = [(torch.randn(2, *shape, device=on.device, dtype=on.half)).unbind() for _ in range(layers)]
    source = torch.randn(rows, model.heads, 40, width // model.heads, device=on.device, dtype=on.half)
    start = torch.zeros(rows, 1, dtype=torch.long, device=on.device)
    offsets = (torch.arange(rows, device=on.device) // beams * beams).view(sentences, beams)

    def reordered(past: Past, order: list[int]) -> Past:
        return [tuple(torch.stack([each[i] for i in order]) for each in pair) for pair in past]  # type: ignore[misc]

    @torch.no_grad()
    def step():
        past: Past = [(keys.clone(), values.clone()) for keys, values in first]
        word, sums = start, torch.zeros(rows, device=on.device)
        for i in range(tokens):
            scores = model(word, past, source, begin + i).float()
            if fault:
                order, words, totals = chosen_on_host(scores, sums, beams)
                past = reordered(past, order)
                word, sums = torch.tensor(words, device=on.device)[:, None], torch.tensor(totals, device=on.device)
                continue
            best, which = (scores + sums[:, None]).view(sentences, -1).topk(beams)
            order = (which // scores.shape[1] + offsets).flatten()
            past = [(keys.index_select(0, order), values.index_select(0, order)) for keys, values in past]
            word, sums = (which % scores.shape[1]).view(rows, 1), best.flatten()
        return word

    return step


class Mixing(nn.Module):
    """Mixes positions, then channels: an MLP-Mixer's block."""

    def __init__(self, length: int, width: int):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.positions = nn.Parameter(torch.randn(length, length) / length**0.5)
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.positions @ self.norms[0](x)
        return x + self.channels(self.norms[1](x))


def mixer(layers: int, length: int, width: int, classes: int) -> nn.Sequential:
    blocks = [Mixing(length, width) for _ in range(layers)]
    return nn.Sequential(nn.Linear(256, width), *blocks, nn.LayerNorm(width), nn.Linear(width, classes))


def distillation(on: Machine, fault: bool) -> Step:
    """The teacher's scores keep their graph, so that the backward pass goes through the teacher as well."""
    length = on.size(256, 32)
    teacher = mixer(on.size(8, 3), length, on.size(1024, 128), 512).to(on.device).eval()
    student = mixer(on.size(6, 2), length, on.size(512, 64), 512).to(on.device)
    data = torch.randn(on.size(32, 4), length, 256, device=on.device)

    def loss_of():
        with on.autocast():
            with torch.set_grad_enabled(fault):
                wanted = teacher(data)
            said = student(data)
            return functional.kl_div(
                functional.log_softmax(said / 2, -1), functional.softmax(wanted / 2, -1), reduction="batchmean"
            )

    return training(loss_of, torch.optim.AdamW(student.parameters(), lr=1e-4, fused=True))


def accumulation(on: Machine, fault: bool) -> Step:
    """A batch in eight parts: the optimizer moves after each of them; mended by once for all."""
    width, length = on.size(1024, 160), on.size(64, 8)
    layers = [
        nn.TransformerEncoderLayer(width, on.size(16, 2), 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        for _ in range(on.size(4, 2))
    ]
    model = nn.Sequential(*layers, nn.Linear(width, 16)).to(on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    parts = [torch.randn(on.size(8, 2), length, width, device=on.device) for _ in range(8)]

    def update():
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def step():
        for part in parts:
            with on.autocast():
                loss = model(part).square().mean()
            (loss / len(parts)).backward()
            if fault:
                update()
        if not fault:
            update()

    return step


def private(on: Machine, fault: bool) -> Step:
    """Differential privacy: every sample's gradient is clipped. One backward for each; mended by vmap."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 3), nn.Tanh(), nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.Flatten(), nn.Linear(32 * 36, 10)
    ).to(on.device)
    weights = dict(model.named_parameters())
    images, labels = torch.randn(24, 1, 28, 28, device=on.device), torch.arange(24, device=on.device) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)

    def sample_loss(parameters, image, label):
        return functional.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    of_each = vmap(grad(sample_loss), in_dims=(None, 0, 0))

    def one_by_one():
        sums = {name: torch.zeros_like(each) for name, each in weights.items()}
        for image, label in zip(images, labels, strict=True):
            model.zero_grad()
            functional.cross_entropy(model(image[None]), label[None]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for name, each in weights.items():
                sums[name] += each.grad
        return sums

    def together():
        gradients = of_each({name: each.detach() for name, each in weights.items()}, images, labels)
        norms = torch.stack([each.flatten(1).norm(dim=1) for each in gradients.values()]).norm(dim=0)
        scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        return {name: torch.einsum("n,n...->...", scale, each) for name, each in gradients.items()}

    def step():
        sums = one_by_one() if fault else together()
        for name, each in weights.items():
            each.grad = (sums[name] + torch.randn_like(each)) / len(images)
        optimizer.step()
        return sums

    return step


class SpeechBlock(nn.Module):
    """Of a speech synthesizer: attention over positions, then two convolutions of one position each, which want the
    channels before the positions; or linear layers, which do not."""

    def __init__(self, width: int, by_convolution: bool):
        super().__init__()
        self.heads, self.by_convolution = max(1, width // 64), by_convolution
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide: nn.Module
        self.narrow: nn.Module
        if by_convolution:
            self.wide, self.narrow = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(2 * width, width, 1)
        else:
            self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.mix(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = self.first(x + self.out(y))
        y = x.transpose(1, 2).contiguous() if self.by_convolution else x
        y = self.narrow(functional.relu(self.wide(y)))
        return self.second(x + (y.transpose(1, 2).contiguous() if self.by_convolution else y))


def synthesis(on: Machine, fault: bool) -> Step:
    width = on.size(512, 32)
    model = nn.Sequential(*[SpeechBlock(width, fault) for _ in range(on.size(6, 3))], nn.Linear(width, 80)).to(
        on.device
    )
    sounds = torch.randn(on.size(48, 16), on.size(512, 64), width, device=on.device)
    spectra = torch.randn(*sounds.shape[:2], 80, device=on.device)

    def loss_of():
        with on.autocast():
            return functional.l1_loss(model(sounds), spectra)

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "beam-search-in-python": Program(
        beam_search,
        ("host-sync", "repeated-operators"),
        near=("launch-overhead", "host-code"),
        says="candidates are read one by one and the cache is put together row by row: topk over all, index_select",
    ),
    "distillation-teacher-gradients": Program(
        distillation,
        ("unused-gradients",),
        says="the backward pass computes gradients of the teacher, which nobody uses: no_grad around the teacher",
    ),
    "accumulation-updates-each-part": Program(
        accumulation,
        ("optimizer-share",),
        near=("launch-overhead", "single-tensor-optimizer"),
        says="the optimizer and the clipping run after every part of the batch: once after all (no rule tells this)",
    ),
    "private-gradients-one-by-one": Program(
        private,
        ("repeated-operators", "small-batch"),
        near=("launch-overhead",),
        says="one forward and backward pass for each sample: torch.func.vmap over per-sample gradients",
    ),
    "speech-transposed-for-convolutions": Program(
        synthesis,
        ("layout-copies",),
        says="each block copies into channels-first and back for convolutions of width one: linear layers",
    ),
}
