"""A sealed test of code as people ship it (library.py, SHIPPED): thirty programs with a fault and eight without.

For a CPU (and a GPU), declared and committed before any of these was recorded, by somebody who had not read the rules.
Their kinds are those that reviews of research repositories and in-house projects meet, about as often as they do:
data that is made anew in the training's process, metrics and logging in every step, networks that run twice, values
that stay the same and are computed again, loops over what one call takes, settings that were copied from elsewhere,
losses and optimizers by hand. More than half run on libraries, as their users call them: transformers, peft,
accelerate, diffusers, timm, torchvision, lightning, torchmetrics, torch_geometric, pandas. A program needs those of its
`needs`, and is left out where one is missing; shipped_requirements.txt lists what all were written for.

About a third has no rule by name: there `findings` begins with the name that one would have, and holds another only
where that leads to the fault, too. `where` names the place: the function that is at fault, and its operators or
classes. For programs without a fault `near` names what is true of them all the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import kinds_shipped_data
import kinds_shipped_language
import kinds_shipped_loops
import kinds_shipped_space
import kinds_shipped_vision
from gpu_models import Machine, Program, Step
from kinds_shipped_models import (
    bert_settings,
    convolved,
    decoder,
    endless,
    lightning_steps,
    quiet,
    texts,
    tokenizer_of,
    trained,
    trainer_of,
    trainer_steps,
)


def tuned(on: Machine) -> Step:
    """The Trainer fine-tunes an encoder on texts that were tokenized before; a batch has texts of about one length."""
    quiet()
    from transformers import BertForSequenceClassification, DataCollatorWithPadding

    tokenizer = tokenizer_of(2000)
    model = BertForSequenceClassification(bert_settings(on, 2000, num_labels=4))
    encoded = tokenizer(texts(256, 40, 60, 2000), return_token_type_ids=False)
    columns = zip(encoded["input_ids"], encoded["attention_mask"], strict=True)
    rows = [{"input_ids": ids, "attention_mask": mask, "labels": i % 4} for i, (ids, mask) in enumerate(columns)]
    settings = {"per_device_train_batch_size": on.size(64, 8), "train_sampling_strategy": "group_by_length"}
    collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8 if on.is_gpu else None)
    return trainer_steps(trainer_of(on, model, train_dataset=rows, data_collator=collate, settings=settings))


def written(on: Machine) -> Step:
    """generate() writes with its cache, for a batch of prompts."""
    model = decoder(on, 2000)
    prompts = torch.randint(5, 2000, (on.size(64, 8), on.size(512, 48)), device=on.device)
    whole, count = torch.ones_like(prompts), on.size(64, 6)

    def step():
        return model.generate(
            input_ids=prompts, attention_mask=whole, do_sample=False, min_new_tokens=count, max_new_tokens=count
        )

    return step


def patched(on: Machine) -> Step:
    """timm's vision transformer learns from mixed photos, with an average of its weights."""
    quiet()
    import timm
    from timm.utils.model_ema import ModelEmaV3

    side = on.size(224, 64)
    shape = {"img_size": side, "patch_size": on.size(16, 8), "embed_dim": on.size(384, 96), "depth": on.size(12, 2)}
    model: Any = timm.create_model("vit_tiny_patch16_224", num_classes=100, num_heads=on.size(6, 3), **shape)
    model = model.to(on.device)
    average = ModelEmaV3(model, decay=0.999, foreach=True)
    count = on.size(256, 8)
    photos, labels = torch.randn(count, 3, side, side, device=on.device), torch.randint(0, 100, (count,))
    wanted = functional.one_hot(labels, 100).float().to(on.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def loss_of():
        mixed, targets = photos.lerp(photos.flip(0), 0.3), wanted.lerp(wanted.flip(0), 0.3)
        with on.autocast():
            return functional.cross_entropy(model(mixed), targets)

    step = trained(loss_of, optimizer)

    def averaged():
        loss = step()
        average.update(model)
        return loss

    return averaged


def reconstructed(on: Machine) -> Step:
    """lightning trains an autoencoder of machines' vibrations, which it gets in whole batches."""
    quiet()
    import lightning

    width, count, length = on.size(128, 16), on.size(512, 12), on.size(4096, 512)

    class Autoencoder(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            layers: list[nn.Module] = []
            for before, after in itertools.pairwise((1, width, 2 * width, 2 * width)):
                layers += [nn.Conv1d(before, after, 8, 4, 2), nn.GELU()]
            for before, after in itertools.pairwise((2 * width, 2 * width, width, 1)):
                layers += [nn.ConvTranspose1d(before, after, 8, 4, 2), nn.GELU()]
            self.network = nn.Sequential(*layers[:-1])

        def training_step(self, batch, _):
            loss = functional.l1_loss(self.network(batch), batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)

    return lightning_steps(on, Autoencoder(), list(torch.randn(4, count, 1, length)))


def sensed(on: Machine) -> Step:
    """A graph network of torch_geometric, of neighbours that are in order and as many for each node."""
    from torch_geometric.nn import SAGEConv

    nodes, width = on.size(100_000, 1500), on.size(256, 32)
    neighbours = torch.randint(0, nodes, (8 * nodes,), device=on.device)
    edges = torch.stack((neighbours, torch.arange(nodes, device=on.device).repeat_interleave(8)))
    layers = nn.ModuleList(SAGEConv(width, width) for _ in range(2)).to(on.device)
    head = nn.Linear(width, 12).to(on.device)
    seen, kinds = torch.randn(nodes, width, device=on.device), torch.arange(nodes, device=on.device) % 12

    def loss_of():
        x = seen
        for layer in layers:
            x = functional.relu(layer(x, edges))
        return functional.cross_entropy(head(x), kinds)

    return trained(loss_of, torch.optim.Adam([*layers.parameters(), *head.parameters()], lr=0.01, fused=True))


def noised(on: Machine) -> Step:
    """diffusers' network learns to take noise from pictures of one size."""
    quiet()
    from diffusers import DDPMScheduler, UNet2DModel

    side, count = on.size(64, 16), on.size(64, 4)
    unet: Any = UNet2DModel(
        sample_size=side,
        layers_per_block=1,
        block_out_channels=(on.size(128, 16), on.size(256, 32)),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    unet = unet.to(on.device, memory_format=torch.channels_last)
    scheduler = DDPMScheduler()
    pictures = torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)

    def loss_of():
        noise = torch.randn_like(pictures)
        times = torch.randint(0, len(scheduler), (count,), device=on.device)
        with on.autocast():
            found = unet(scheduler.add_noise(pictures, noise, times), times).sample
        return functional.mse_loss(found.float(), noise)

    return trained(loss_of, torch.optim.AdamW(unet.parameters(), lr=1e-4, fused=True))


def spoken(on: Machine) -> Step:
    """Words of speech are recognized by their spectra; torchaudio's transform is made once, and masks some of it."""
    from torchaudio.transforms import FrequencyMasking, MelSpectrogram, TimeMasking

    count = on.size(512, 8)
    spectra = MelSpectrogram(16_000, n_fft=512, hop_length=256, n_mels=40).to(on.device)
    masks = nn.Sequential(FrequencyMasking(8), TimeMasking(12))
    model = convolved(on, 35, channels=1)
    waves, words = torch.randn(count, 16_000, device=on.device), torch.randint(0, 35, (count,), device=on.device)

    def loss_of():
        seen = masks((spectra(waves) + 1e-6).log())
        with on.autocast():
            return functional.cross_entropy(model(seen[:, None]), words)

    return trained(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


class Tower(nn.Module):
    """Somebody's features, of which each is a number of a table."""

    def __init__(self, columns: int, rows: int, width: int):
        super().__init__()
        self.table = nn.EmbeddingBag(columns * rows, width, mode="sum", sparse=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, ids):
        return functional.normalize(self.mlp(self.table(ids)), dim=-1)


def retrieved(on: Machine) -> Step:
    """Two towers learn who clicks what, with the other rows of the batch as what was not clicked."""
    count, columns, rows, width = on.size(8192, 256), 12, on.size(100_000, 2000), on.size(128, 64)
    towers = nn.ModuleList(Tower(columns, rows, width) for _ in range(2)).to(on.device)
    begins = torch.arange(columns, device=on.device) * rows
    both = torch.randint(0, rows, (2, 4 * count, columns), device=on.device) + begins
    batches = endless(both.split(count, dim=1))
    right = torch.arange(count, device=on.device)
    tables = [weight for name, weight in towers.named_parameters() if "table" in name]
    others = [weight for name, weight in towers.named_parameters() if "table" not in name]
    sparse, dense = torch.optim.SGD(tables, lr=0.1), torch.optim.AdamW(others, lr=1e-3, fused=True)

    def step():
        who, what = next(batches)
        sparse.zero_grad(set_to_none=True)
        dense.zero_grad(set_to_none=True)
        with on.autocast():
            scores = towers[0](who) @ towers[1](what).T / 0.05
        loss = functional.cross_entropy(scores.float(), right)
        loss.backward()
        sparse.step()
        dense.step()
        return loss.detach()

    return step


SMALL = ("launch-overhead", "pointwise-unfused")  # small models of libraries: true of all of them

HEALTHY = {
    "healthy-reviews-fine-tuned": Program(
        lambda on, _: tuned(on),
        (),
        near=SMALL,
        needs=("transformers", "tokenizers", "accelerate"),
        says="tokens were made before, padding is that of a batch, attention and optimizer are fused",
    ),
    "healthy-texts-generated": Program(
        lambda on, _: written(on),
        (),
        near=(*SMALL, "host-sync", "repeated-operators"),
        needs=("transformers",),
        says="a batch is written with a cache; generate asks after each token whether all are done",
    ),
    "healthy-vision-transformer": Program(
        lambda on, _: patched(on),
        (),
        near=(*SMALL, "dominant-operator"),
        needs=("timm",),
        says="mixed in the batch, fused attention and optimizer, the average in place for all weights at once",
    ),
    "healthy-vibrations-in-lightning": Program(
        lambda on, _: reconstructed(on),
        (),
        near=(*SMALL, "dominant-operator", "slow-convolution"),
        needs=("lightning",),
        says="whole batches are in memory, one value is logged, without waiting for it",
    ),
    "healthy-graph-of-neighbours": Program(
        lambda on, _: sensed(on),
        (),
        near=(*SMALL, "contended-scatter", "index-backward", "dominant-operator"),
        needs=("torch_geometric",),
        says="messages are gathered and added for all edges at once; the graph needs no normalization",
    ),
    "healthy-noise-in-diffusers": Program(
        lambda on, _: noised(on),
        (),
        near=(*SMALL, "dominant-operator"),
        needs=("diffusers",),
        says="one pass for all times of a batch, fused attention and optimizer",
    ),
    "healthy-spoken-words": Program(
        lambda on, _: spoken(on),
        (),
        near=(*SMALL, "dominant-operator"),
        needs=("torchaudio",),
        says="window and filters of the spectra are made once, their length is a power of two",
    ),
    "healthy-two-towers": Program(
        lambda on, _: retrieved(on),
        (),
        near=(*SMALL, "many-optimizers", "dominant-operator"),
        says="one table for all columns with sparse gradients, all pairs of a batch by one product",
    ),
}

PROGRAMS = {
    **kinds_shipped_language.PROGRAMS,
    **kinds_shipped_vision.PROGRAMS,
    **kinds_shipped_loops.PROGRAMS,
    **kinds_shipped_data.PROGRAMS,
    **kinds_shipped_space.PROGRAMS,
    **HEALTHY,
}

ON_GPU_ONLY: set[str] = set()
