"""Records the two traces of a small decoder that docs/tutorial.md uses: before and after the fix.

    .venv/bin/python tests/data/make_decoder_traces.py      # writes decoder_{slow,fast}.lane here

Both read a prompt of 192 tokens and generate 8 more, on one CPU thread. The slow one computes attention by hand in
double precision, following the formula; the fast one calls the fused operator.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import torch
from torch import nn
from torch.nn import functional

from firelane.profiler import profile

HERE = Path(__file__).resolve().parent

WIDTH, HEADS, LAYERS, WORDS, PROMPT, TOKENS = 128, 4, 2, 512, 192, 8


class Layer(nn.Module):
    def __init__(self, slow: bool):
        super().__init__()
        self.slow = slow
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.keys = self.values = None

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if tokens == 1:
            k, v = torch.cat([self.keys, k], 2), torch.cat([self.values, v], 2)
        self.keys, self.values = k, v
        y = (
            self.by_hand(q, k, v)
            if self.slow
            else functional.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.down(functional.gelu(self.up(x)))

    def by_hand(self, q, k, v):
        scores = q.double() @ k.double().transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        if q.shape[2] > 1:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
        return (torch.softmax(scores, -1) @ v.double()).float()


class Decoder(nn.Module):
    def __init__(self, slow: bool):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(*[Layer(slow) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens))[:, -1:])


def generate(model: nn.Module) -> None:
    tokens = torch.arange(PROMPT).remainder(WORDS).repeat(16, 1)
    with torch.no_grad():
        for _ in range(TOKENS + 1):
            tokens = model(tokens).argmax(-1)


def main() -> None:
    torch.set_num_threads(1)
    for slow in (True, False):
        torch.manual_seed(0)
        model = Decoder(slow)
        generate(model)
        with profile(record_shapes=True) as prof:
            generate(model)
        path = HERE / f"decoder_{'slow' if slow else 'fast'}.lane"
        path.unlink(missing_ok=True)
        prof.save(str(path))


if __name__ == "__main__":
    main()
