"""A fourth blind test (library.py, FRESH): eight more kinds of programs, for a CPU, and one without a fault.

Written after the rules that the second and the third blind test led to, of kinds that no program before had: an agent
in an environment in Python, messages along the edges of a graph, a diffusion sampler, speech features, a fine-tuned
head on a body, a server that batches requests, text that becomes tokens in the loop, metrics outside of torch. Faults
were declared and committed before any of these was recorded.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy
import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step, training


class Corridors:
    """Agents in a corridor, each a Python object: left, right, or stay; the end pays."""

    def __init__(self, count: int, length: int):
        self.places, self.length, self.ages = [0] * count, length, [0] * count

    def observe(self) -> list[list[float]]:
        return [
            [place / self.length, age / 50, float(place % 2), float(place > self.length // 2)]
            for place, age in zip(self.places, self.ages, strict=True)
        ]

    def move(self, actions: list[int]) -> list[float]:
        rewards = []
        for i, action in enumerate(actions):
            self.places[i] = min(self.length, max(0, self.places[i] + action - 1))
            self.ages[i] += 1
            done = self.places[i] == self.length or self.ages[i] == 50
            rewards.append(1.0 if self.places[i] == self.length else -0.01)
            if done:
                self.places[i] = self.ages[i] = 0
        return rewards


class CorridorsAsTensors:
    def __init__(self, count: int, length: int, device: str):
        self.places = torch.zeros(count, device=device)
        self.ages, self.length = torch.zeros(count, device=device), length

    def observe(self) -> torch.Tensor:
        half = (self.places > self.length // 2).float()
        return torch.stack((self.places / self.length, self.ages / 50, self.places % 2, half), dim=1)

    def move(self, actions: torch.Tensor) -> torch.Tensor:
        self.places = (self.places + actions - 1).clamp(0, self.length)
        self.ages = self.ages + 1
        arrived = self.places == self.length
        stays = ~(arrived | (self.ages == 50))
        self.places, self.ages = self.places * stays, self.ages * stays
        return torch.where(arrived, 1.0, -0.01)


def agent(on: Machine, fault: bool) -> Step:
    """Rollouts of some steps, then a policy gradient; the environment is Python or tensors."""
    count, steps, width = on.size(1024, 256), 8, on.size(256, 64)
    policy = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 3)).to(on.device)
    plain, tensors = Corridors(count, 20), CorridorsAsTensors(count, 20, on.device)

    def observed() -> torch.Tensor:
        return torch.tensor(plain.observe(), device=on.device) if fault else tensors.observe()

    def loss_of():
        total = torch.zeros((), device=on.device)
        for _ in range(steps):
            scores = policy(observed()).log_softmax(1)
            actions = torch.multinomial(scores.exp(), 1).squeeze(1)
            rewards = torch.tensor(plain.move(actions.tolist())).to(on.device) if fault else tensors.move(actions)
            total = total - (scores.gather(1, actions[:, None]).squeeze(1) * rewards).mean()
        return total

    return training(loss_of, torch.optim.Adam(policy.parameters(), lr=1e-3, fused=True))


def messages(on: Machine, fault: bool) -> Step:
    """Each node takes the mean of its neighbours, of which there are 1 to 12: node by node, or by one index_add."""
    nodes, width = on.size(1024, 160), on.size(256, 48)
    drawn = random.Random(0)
    neighbours = [[drawn.randrange(nodes) for _ in range(drawn.randrange(1, 13))] for _ in range(nodes)]
    lists = [torch.tensor(each, device=on.device) for each in neighbours]
    to = torch.tensor([i for i, each in enumerate(neighbours) for _ in each], device=on.device)
    come = torch.tensor([other for each in neighbours for other in each], device=on.device)
    degrees = torch.tensor([float(len(each)) for each in neighbours], device=on.device)[:, None]
    features = torch.randn(nodes, width, device=on.device)
    layers = nn.ModuleList([nn.Linear(2 * width, width) for _ in range(2)]).to(on.device)

    def gathered(x: torch.Tensor) -> torch.Tensor:
        if fault:
            return torch.stack([x[each].mean(0) for each in lists])
        return torch.zeros_like(x).index_add(0, to, x[come]) / degrees

    def loss_of():
        x = features
        for layer in layers:
            x = functional.relu(layer(torch.cat((x, gathered(x)), dim=1)))
        return x.square().mean()

    return training(loss_of, torch.optim.Adam(layers.parameters(), lr=1e-3, fused=True))


class Denoiser(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first, self.last = nn.Linear(65, width), nn.Linear(width, 64)
        self.middle = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])

    def forward(self, x, time):
        x = functional.silu(self.first(torch.cat((x, time.expand(len(x), 1)), dim=1)))
        for layer in self.middle:
            x = x + functional.silu(layer(x))
        return self.last(x)


def schedule(device: str) -> torch.Tensor:
    """How much of the image is left after each of many small steps: the same numbers whenever it is asked for."""
    betas = torch.linspace(1e-4, 0.02, 20_000, dtype=torch.float64, device=device)
    return torch.cumprod(1 - betas, 0).float()


def sampler(on: Machine, fault: bool) -> Step:
    model = Denoiser(on.size(512, 96)).to(on.device).eval()
    start = torch.randn(on.size(256, 32), 64, device=on.device)
    kept = schedule(on.device)

    @torch.inference_mode()
    def step():
        x = start
        for i in reversed(range(6)):
            left = (schedule(on.device) if fault else kept)[i * 3000]
            noise = model(x, left)
            x = (x - (1 - left).sqrt() * noise) / left.sqrt().clamp(min=1e-3)
        return x

    return step


def features(on: Machine, fault: bool) -> Step:
    """Bands of a spectrum, each wider than the one before: summed band by band, or by one product with a matrix."""
    size, bands, width = 512, 48, on.size(256, 48)
    edges = [round(2 + (size // 2 - 30) * (i / (bands + 1)) ** 2 + i / 2) for i in range(bands + 2)]
    bank = torch.zeros(size // 2 + 1, bands, device=on.device)
    for i in range(bands):
        bank[edges[i] : edges[i + 2] + 1, i] = 1
    model = nn.Sequential(nn.Linear(bands, width), nn.ReLU(), nn.Linear(width, 32)).to(on.device)
    sounds = torch.randn(on.size(32, 4), on.size(32_000, 8000), device=on.device)
    window = torch.hann_window(size, device=on.device)

    def loss_of():
        power = torch.stft(sounds, size, 256, window=window, return_complex=True).abs().square().transpose(1, 2)
        if fault:
            each = [power[..., edges[i] : edges[i + 2] + 1].sum(-1) for i in range(bands)]
            summed = torch.stack(each, dim=-1)
        else:
            summed = power @ bank
        return model((summed + 1e-6).log()).square().mean()

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-4, fused=True))


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(functional.gelu(self.inner(self.norm(x))))


def head(on: Machine, fault: bool) -> Step:
    """A head of two layers is trained on a body of eight that are the same; nobody froze the body."""
    width = on.size(1024, 160)
    body = nn.Sequential(*[Layer(width) for _ in range(8)]).to(on.device)
    trained = nn.Sequential(*[Layer(width) for _ in range(2)], nn.Linear(width, 10)).to(on.device)
    if not fault:
        body.requires_grad_(False)
    data = torch.randn(on.size(2048, 128), width, device=on.device)
    labels = torch.arange(len(data), device=on.device) % 10

    def loss_of():
        body.zero_grad(set_to_none=True)
        return functional.cross_entropy(trained(body(data)), labels)

    return training(loss_of, torch.optim.AdamW(trained.parameters(), lr=1e-4, fused=True))


class Answerer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 100)

    def forward(self, tokens):
        padded = tokens == 0
        x = self.layers(self.tokens(tokens), src_key_padding_mask=padded)
        kept = (~padded).unsqueeze(-1).float()
        return self.out((x * kept).sum(1) / kept.sum(1)).argmax(-1)


def server(on: Machine, fault: bool) -> Step:
    """Requests of 4 to 128 tokens, most of them short, in batches of 16: as they come, or sorted by length."""
    model = Answerer(on.size(256, 64)).to(on.device).eval()
    drawn = random.Random(0)
    lengths = [4 + int(124 * drawn.random() ** 4) for _ in range(on.size(128, 64))]
    requests = [torch.randint(1, 1000, (length,), device=on.device) for length in lengths]

    @torch.inference_mode()
    def step():
        waiting = requests if fault else sorted(requests, key=len)
        answers = []
        for begin in range(0, len(waiting), 16):
            batch = nn.utils.rnn.pad_sequence(waiting[begin : begin + 16], batch_first=True)
            answers.append(model(batch))
        return torch.cat(answers)

    return step


def spelled(drawn: random.Random, words: int) -> str:
    return " ".join("".join(drawn.choice("abcdefgh") for _ in range(drawn.randrange(1, 5))) for _ in range(words))


def classifier(on: Machine, fault: bool) -> Step:
    """A text classifier that splits and looks its words up in every step, or had that done before."""
    count, words, width = on.size(256, 48), 60, on.size(512, 64)
    drawn = random.Random(0)
    texts = [[spelled(drawn, words) for _ in range(count)] for _ in range(4)]
    seen = Counter(word for batch in texts for text in batch for word in text.split())
    numbers = {word: i + 1 for i, (word, _) in enumerate(seen.most_common(2000))}

    def tokens_of(batch: list[str]) -> torch.Tensor:
        rows = [[numbers.get(word.strip().lower(), 0) for word in text.split()] for text in batch]
        return torch.tensor(rows, device=on.device)

    ready = [tokens_of(batch) for batch in texts]
    model = nn.Sequential(nn.EmbeddingBag(2001, width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
    model = model.to(on.device)
    labels = torch.arange(count, device=on.device) % 4
    turn = iter(range(1 << 40))

    def loss_of():
        which = next(turn) % len(texts)
        return functional.cross_entropy(model(tokens_of(texts[which]) if fault else ready[which]), labels)

    return training(loss_of, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True))


def area_under_curve(scores: numpy.ndarray, labels: numpy.ndarray) -> float:
    """At every threshold the share of hits and of alarms, and the area below."""
    hits, alarms = [], []
    for threshold in numpy.unique(scores)[:: max(1, len(scores) // 64)]:
        above = scores >= threshold
        hits.append((above & (labels == 1)).sum() / max(1, (labels == 1).sum()))
        alarms.append((above & (labels == 0)).sum() / max(1, (labels == 0).sum()))
    return float(abs(numpy.trapezoid(hits, alarms)))


def judged(on: Machine, fault: bool) -> Step:
    """The area under the curve of each of four outputs, by NumPy in every step, or every hundredth."""
    count, width = on.size(8192, 1024), on.size(512, 48)
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
    model = model.to(on.device)
    data = torch.randn(count, 32, device=on.device)
    labels = (torch.rand(count, 4, device=on.device) < 0.3).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    done = 0

    def step():
        nonlocal done
        optimizer.zero_grad()
        scores = model(data)
        functional.binary_cross_entropy_with_logits(scores, labels).backward()
        optimizer.step()
        done += 1
        if fault or done % 100 == 0:
            guessed, true = scores.detach().cpu().numpy(), labels.cpu().numpy()
            return [area_under_curve(guessed[:, i], true[:, i]) for i in range(4)]
        return None

    return step


def tabular(on: Machine) -> Step:
    """A wide perceptron over a large batch: products, and little else."""
    width = on.size(2048, 512)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8))
    model = model.to(on.device)
    data = torch.randn(on.size(8192, 512), width, device=on.device)

    def loss_of():
        return model(data).square().mean()

    return training(loss_of, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))


PROGRAMS = {
    "corridor-in-python": Program(
        agent,
        ("host-code", "repeated-operators", "host-sync"),
        near=("launch-overhead",),
        says="the environment is a Python loop over agents; as tensors it is a few operators",
    ),
    "messages-node-by-node": Program(
        messages,
        ("repeated-operators",),
        near=("launch-overhead",),
        says="neighbours of each node are averaged by themselves; one index_add does all nodes",
    ),
    "schedule-in-every-sample": Program(
        sampler,
        ("repeated-operators", "dominant-operator", "constant-work"),
        near=("fp64-compute", "pointwise-unfused"),
        says="the same noise schedule is computed again for every step of the sampler",
    ),
    "features-band-by-band": Program(
        features,
        ("repeated-operators",),
        near=("launch-overhead", "pointwise-unfused"),
        says="bands of different widths are summed one by one; one product with a matrix sums all",
    ),
    "head-on-a-thawed-body": Program(
        head,
        ("unused-gradients",),
        says="gradients of the body are computed and thrown away; its layers look like the head's",
    ),
    "requests-padded-as-they-come": Program(
        server,
        ("padding",),
        near=("repeated-operators", "launch-overhead", "attention-mask"),
        says="short requests are padded to the longest in their batch; sorted by length there is little padding",
    ),
    "words-looked-up-in-the-loop": Program(
        classifier,
        ("host-code",),
        near=("input-bound", "launch-overhead"),
        says="text is split and looked up in Python in every step",
    ),
    "curve-by-numpy-in-every-step": Program(
        judged,
        ("host-code",),
        near=("host-sync", "launch-overhead"),
        says="a metric is computed outside of torch in every step",
    ),
    "healthy-tabular": Program(
        lambda on, _: tabular(on), (), says="large products: nothing that a setting would change"
    ),
}
