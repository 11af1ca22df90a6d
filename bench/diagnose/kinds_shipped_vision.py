"""Pictures in the shipped test (library.py, SHIPPED): torchvision, timm, diffusers, CLIP; each with a planted fault."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from gpu_models import Machine, Program, Step
from kinds_shipped_models import convolved, quiet, trained


def images_of(on: Machine, count: int, side: int) -> torch.Tensor:
    return torch.randn(count, 3, side, side, device=on.device).to(memory_format=torch.channels_last)


def small_network(on: Machine, **more: Any) -> Any:
    """timm's smallest MobileNet."""
    quiet()
    import timm

    model: Any = timm.create_model("mobilenetv3_small_050", pretrained=False, **more)
    return model.to(on.device, memory_format=torch.channels_last)


def zero_shot_labels(model: Any, prompts: torch.Tensor, images: torch.Tensor):
    """Which of the classes' prompts suits each image best."""
    return model(input_ids=prompts, pixel_values=images).logits_per_image.softmax(-1)


class ZeroShot:
    """Keeps what CLIP makes of the prompts."""

    def __init__(self, model: Any, prompts: torch.Tensor):
        self.model = model
        self.prompts = functional.normalize(model.get_text_features(input_ids=prompts).pooler_output, dim=-1)

    def labels(self, images):
        seen = functional.normalize(self.model.get_image_features(pixel_values=images).pooler_output, dim=-1)
        return (self.model.logit_scale.exp() * seen @ self.prompts.T).softmax(-1)


def recognized(on: Machine, fault: bool) -> Step:
    """CLIP says what is in photos, by a prompt for each class."""
    quiet()
    from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

    width = on.size(512, 64)
    inside = {"hidden_size": width, "intermediate_size": 4 * width, "num_attention_heads": on.size(8, 4)}
    inside |= {"num_hidden_layers": on.size(12, 2)}
    text = CLIPTextConfig(vocab_size=1000, bos_token_id=998, eos_token_id=999, max_position_embeddings=77, **inside)
    vision = CLIPVisionConfig(image_size=on.size(224, 64), patch_size=on.size(16, 8), **inside)
    config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=width)
    model: Any = CLIPModel(config).to(on.device).eval()
    prompts = torch.randint(1, 998, (on.size(1000, 20), 12), device=on.device)
    prompts[:, -1] = 999
    images = torch.randn(on.size(64, 4), 3, on.size(224, 64), on.size(224, 64), device=on.device)
    with torch.inference_mode():
        kept = ZeroShot(model, prompts)

    @torch.inference_mode()
    def step():
        return zero_shot_labels(model, prompts, images) if fault else kept.labels(images)

    return step


def save_memory(unet: Any) -> None:
    """Copied from where a card was small."""
    unet.set_attention_slice("max")


def denoised(on: Machine, fault: bool) -> Step:
    """One step of sampling with guidance by a text."""
    quiet()
    from diffusers import DDIMScheduler, UNet2DConditionModel

    text = on.size(768, 32)
    unet = UNet2DConditionModel(
        sample_size=on.size(64, 20),
        layers_per_block=1,
        block_out_channels=(on.size(320, 16), on.size(640, 32)),
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=text,
        attention_head_dim=on.size(8, 4),
        norm_num_groups=8,
    )
    unet = unet.to(on.device, on.half).eval()
    if fault:
        save_memory(unet)
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(50)
    noise = torch.randn(1, 4, on.size(64, 20), on.size(64, 20), device=on.device, dtype=on.half)
    prompts = torch.randn(2, on.size(77, 12), text, device=on.device, dtype=on.half)
    time = scheduler.timesteps[20]

    @torch.inference_mode()
    def step():
        without, with_text = unet(noise.expand(2, -1, -1, -1), time, prompts).sample.chunk(2)
        return scheduler.step(without + 7.5 * (with_text - without), time, noise).prev_sample

    return step


def augment_each(images: torch.Tensor, side: int) -> torch.Tensor:
    """Each image of the batch becomes a picture of PIL's, is cut, turned and made a tensor again."""
    from torchvision import transforms
    from torchvision.transforms import functional as pictures

    augmented = []
    for image in images:
        picture = pictures.to_pil_image(image)
        picture = pictures.resize(pictures.center_crop(picture, [side, side]), [side // 4, side // 4])
        picture = pictures.adjust_brightness(pictures.hflip(picture), 1.2)
        tensor = transforms.ToTensor()(picture)
        augmented.append(transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))(tensor))
    return torch.stack(augmented)


def augment_batch(images: torch.Tensor, side: int) -> torch.Tensor:
    from torchvision.transforms.v2 import functional as batches

    x = batches.resize(batches.center_crop(images, [side, side]), [side // 4, side // 4], antialias=True)
    x = batches.adjust_brightness(batches.horizontal_flip(x), 1.2)
    return batches.normalize(batches.to_dtype(x, torch.float32, scale=True), [0.5] * 3, [0.25] * 3)


def augmented(on: Machine, fault: bool) -> Step:
    """Photos that are in memory are augmented for each step of a small classifier."""
    side, count = on.size(384, 144), on.size(256, 8)
    model = convolved(on, 10)
    photos = torch.randint(0, 256, (count, 3, side + 16, side + 16), dtype=torch.uint8)
    labels = torch.randint(0, 10, (count,), device=on.device)
    augment = augment_each if fault else augment_batch

    def loss_of():
        images = augment(photos, side).to(on.device)
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return trained(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, decay: float) -> None:
    """The average of the weights, by a dictionary of new tensors which is loaded."""
    new = copy.deepcopy(average.state_dict())
    for name, value in copy.deepcopy(model.state_dict()).items():
        if value.is_floating_point():
            new[name] = decay * new[name] + (1 - decay) * value
        else:
            new[name] = value
    average.load_state_dict(new)


def averaged(on: Machine, fault: bool) -> Step:
    """A classifier with an exponential average of its weights."""
    quiet()
    from timm.utils.model_ema import ModelEmaV3

    model = small_network(on, num_classes=100)
    average = copy.deepcopy(model).requires_grad_(False)
    kept = ModelEmaV3(model, decay=0.999, use_warmup=False, foreach=True)
    images, labels = images_of(on, on.size(256, 2), on.size(192, 32)), torch.randint(0, 100, (on.size(256, 2),))
    labels = labels.to(on.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with on.autocast():
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if fault:
            update_average(average, model, 0.999)
            return average.classifier.weight
        kept.update(model)
        return kept.module.classifier.weight

    return step


def distillation_loss(student: nn.Module, teacher: nn.Module, images, labels):
    """The student follows labels, and what its teacher finds likely."""
    answers, wanted = student(images), teacher(images)
    soft = functional.kl_div((answers / 4).log_softmax(1), (wanted / 4).softmax(1), reduction="batchmean")
    return functional.cross_entropy(answers, labels) + 16 * soft


def distillation_loss_without_graph(student: nn.Module, teacher: nn.Module, images, labels):
    with torch.no_grad():
        wanted = (teacher(images) / 4).softmax(1)
    answers = student(images)
    soft = functional.kl_div((answers / 4).log_softmax(1), wanted, reduction="batchmean")
    return functional.cross_entropy(answers, labels) + 16 * soft


def distilled(on: Machine, fault: bool) -> Step:
    """A small network learns from torchvision's SqueezeNet."""
    from torchvision.models import squeezenet1_1

    teacher: Any = squeezenet1_1(num_classes=100)
    teacher = teacher.to(on.device, memory_format=torch.channels_last).eval()
    student = convolved(on, 100)
    count, side = on.size(256, 4), on.size(224, 64)
    images, labels = images_of(on, count, side), torch.randint(0, 100, (count,), device=on.device)
    loss_by = distillation_loss if fault else distillation_loss_without_graph

    def loss_of():
        with on.autocast():
            return loss_by(student, teacher, images, labels)

    return trained(loss_of, torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9, foreach=True))


class Uncertain(nn.Module):
    """A body without dropout, and a head with it."""

    def __init__(self, on: Machine, classes: int):
        super().__init__()
        self.body = small_network(on, num_classes=0)
        self.head = nn.Sequential(
            nn.Linear(self.body.head_hidden_size, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, classes)
        )

    def forward(self, images):
        return self.head(self.body(images))


def predict_with_uncertainty(model: Uncertain, images, samples: int):
    """Average and spread of answers with dropout."""
    answers = torch.stack([model(images).softmax(-1) for _ in range(samples)])
    return answers.mean(0), answers.var(0)


def predict_with_uncertain_head(model: Uncertain, images, samples: int):
    features = model.body(images)
    answers = torch.stack([model.head(features).softmax(-1) for _ in range(samples)])
    return answers.mean(0), answers.var(0)


def doubted(on: Machine, fault: bool) -> Step:
    """The next photos to label are those of which a network is unsure."""
    model = Uncertain(on, 50).to(on.device).eval()
    model.head[2].train()
    images = images_of(on, on.size(256, 2), on.size(224, 48))
    predict = predict_with_uncertainty if fault else predict_with_uncertain_head

    @torch.inference_mode()
    def step():
        with on.autocast():
            return predict(model, images, on.size(30, 4))

    return step


class UpsampledHead(nn.Module):
    """Classes of pixels, from features at a quarter of the size."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.classify = nn.Conv2d(width, classes, 1)

    def forward(self, features):
        features = functional.interpolate(features, scale_factor=4, mode="bilinear", align_corners=False)
        return self.classify(features)


class ClassifiedFirst(UpsampledHead):
    def forward(self, features):
        return functional.interpolate(self.classify(features), scale_factor=4, mode="bilinear", align_corners=False)


def segmented(on: Machine, fault: bool) -> Step:
    """Streets are divided into nineteen classes."""
    width, side, count = on.size(256, 64), on.size(512, 64), on.size(16, 2)
    body = nn.Sequential(
        nn.Conv2d(3, width // 2, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width // 2),
        nn.ReLU(inplace=True),
        nn.Conv2d(width // 2, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.Conv2d(width, width, 3, 1, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
    )
    made: Any = nn.Sequential(body, (UpsampledHead if fault else ClassifiedFirst)(width, 19))
    model = made.to(on.device, memory_format=torch.channels_last)
    images = images_of(on, count, side)
    labels = torch.randint(0, 19, (count, side, side), device=on.device)

    def loss_of():
        with on.autocast():
            return functional.cross_entropy(model(images), labels)

    return trained(loss_of, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True))


PROGRAMS = {
    "class-prompts-encoded-for-every-batch": Program(
        recognized,
        ("constant-work", "unchanged-work"),
        near=("repeated-inputs", "dominant-operator"),
        where=("zero_shot_labels", "CLIPTextModel", "CLIPTextTransformer", "text_model", "CLIPModel.forward"),
        needs=("transformers",),
        says="prompts of the classes are the same for every batch, and CLIP encodes them again; keep their features",
    ),
    "attention-in-slices": Program(
        denoised,
        ("attention-unfused",),
        near=("repeated-operators", "launch-overhead", "small-batch"),
        where=(
            "save_memory",
            "SlicedAttnProcessor",
            "attention_slice",
            "aten::baddbmm",
            "aten::softmax",
            "aten::_softmax",
        ),
        needs=("diffusers",),
        says="set_attention_slice computes attention head by head, with its weights in memory; the default is fused",
    ),
    "photos-augmented-through-pil": Program(
        augmented,
        ("host-code",),
        near=("input-bound", "repeated-operators", "exposed-copies", "pageable-copies"),
        where=("augment_each", "to_pil_image", "ToTensor", "to_tensor"),
        needs=("torchvision",),
        says="photos that are tensors become pictures of PIL's one by one and tensors again; torchvision.transforms.v2 "
        "takes the batch",
    ),
    "average-of-weights-by-dictionaries": Program(
        averaged,
        ("whole-copies", "copied-modules"),
        near=("small-copies", "repeated-operators", "launch-overhead"),
        where=("update_average", "load_state_dict", "deepcopy", "state_dict", "aten::clone"),
        needs=("timm",),
        says="the average of the weights copies two dictionaries of states and loads a third, weight by weight; "
        "torch._foreach_lerp_ in place, as ModelEmaV3 does it",
    ),
    "gradients-for-the-teacher": Program(
        distilled,
        ("unused-gradients",),
        where=("distillation_loss", "convolution_backward"),
        needs=("torchvision",),
        says="the teacher answers with a graph, and backward goes through it to weights that no optimizer has; "
        "torch.no_grad()",
    ),
    "body-repeated-for-dropout-of-the-head": Program(
        doubted,
        ("repeated-inputs", "unchanged-work"),
        near=("repeated-operators", "launch-overhead"),
        where=("predict_with_uncertainty", "Uncertain"),
        needs=("timm",),
        says="all of the network runs for each draw, but only its head has dropout; the body's features stay the same",
    ),
    "classes-after-enlarging": Program(
        segmented,
        ("order-of-linear-layers",),
        near=("dominant-operator",),
        where=("UpsampledHead", "upsample_bilinear2d"),
        says="all channels are enlarged before a convolution of 1x1 makes classes of them; the other way round the "
        "result is the same, and both do a fraction of the work",
    ),
}
