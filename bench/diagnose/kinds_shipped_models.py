"""What several programs of the shipped test (kinds_shipped.py) are built of, with nothing wrong in it.

Libraries are imported where they are used: a machine needs only those of the programs that it runs. Models are small,
with random weights; nothing is downloaded.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gpu_models import Machine, Step

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def quiet() -> None:
    """Libraries ask no server and tell no news; an own process for each program keeps that away from others."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
    warnings.filterwarnings("ignore")
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)


def endless(loader: Iterable) -> Iterator:
    while True:
        yield from loader


def trained(loss_of: Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer) -> Step:
    """A step that returns its loss."""

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def loader_of(*columns: torch.Tensor, batch: int, shuffle: bool = True) -> DataLoader:
    return DataLoader(TensorDataset(*columns), batch_size=batch, shuffle=shuffle, drop_last=True)


def convolved(on: Machine, classes: int, channels: int = 3) -> Any:
    """A small network of pictures."""
    width = on.size(64, 12)
    layers: list[nn.Module] = []
    for before, after in ((channels, width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    model: Any = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, classes))
    return model.to(on.device, memory_format=torch.channels_last)


def tokenizer_of(words: int) -> Any:
    """Whole words, each a number."""
    quiet()
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = [*SPECIAL, *(f"word{i}" for i in range(words - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def texts(count: int, shortest: int, longest: int, words: int) -> list[str]:
    lengths = torch.randint(shortest, longest + 1, (count,)).tolist()
    return [
        " ".join(f"word{i}" for i in torch.randint(0, words - len(SPECIAL), (length,)).tolist()) for length in lengths
    ]


def bert_settings(on: Machine, words: int, **more: Any) -> Any:
    """Without dropout, so that the mended program can be compared."""
    quiet()
    from transformers import BertConfig

    width = on.size(768, 64)
    settings = {
        "vocab_size": words,
        "hidden_size": width,
        "num_hidden_layers": on.size(12, 2),
        "num_attention_heads": on.size(12, 4),
        "intermediate_size": 4 * width,
        "max_position_embeddings": 512,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return BertConfig(**{**settings, **more})


def decoder(on: Machine, words: int, **more: Any) -> Any:
    quiet()
    from transformers import LlamaConfig, LlamaForCausalLM

    width = on.size(2048, 64)
    settings = {
        "vocab_size": words,
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": on.size(16, 2),
        "num_attention_heads": on.size(16, 4),
        "num_key_value_heads": on.size(8, 2),
        "max_position_embeddings": 2048,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }
    model: Any = LlamaForCausalLM(LlamaConfig(**{**settings, **more}))
    return model.to(on.device, on.half).eval()


def trainer_of(on: Machine, model: nn.Module, **more: Any) -> Any:
    """transformers' Trainer, which reports to nobody."""
    quiet()
    from transformers import PrinterCallback, Trainer, TrainingArguments

    settings = more.pop("settings", {})
    arguments = TrainingArguments(
        output_dir=str(Path(tempfile.gettempdir()) / "firelane-shipped"),
        use_cpu=not on.is_gpu,
        bf16=on.is_gpu,
        report_to="none",
        disable_tqdm=True,
        optim="adamw_torch_fused",
        dataloader_pin_memory=on.is_gpu,
        remove_unused_columns=False,
        **settings,
    )
    trainer = Trainer(model=model, args=arguments, **more)
    trainer.remove_callback(PrinterCallback)
    return trainer


def trainer_steps(trainer: Any) -> Step:
    """One step of the Trainer's loop with each call: its batch, its forward and backward, its optimizer."""
    batches = endless(trainer.get_train_dataloader())
    optimizer = trainer.create_optimizer()
    model = trainer.model
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps  # its loop sets that

    def step():
        loss = trainer.training_step(model, next(batches))
        trainer.accelerator.clip_grad_norm_(model.parameters(), trainer.args.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def lightning_steps(on: Machine, module: Any, loader: Iterable) -> Step:
    """One batch of lightning's loop with each call: `fit` sets everything up, and leaves the loop to the caller.

    Written for lightning 2.6: its loop knows no pause.
    """
    quiet()
    import lightning
    from lightning.pytorch.trainer.states import TrainerFn

    trainer: Any = lightning.Trainer(
        accelerator="gpu" if on.is_gpu else "cpu",
        devices=1,
        precision="bf16-mixed" if on.is_gpu else "32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        max_epochs=-1,
    )
    epochs = trainer.fit_loop
    batches = epochs.epoch_loop

    def begin():
        epochs.setup_data()
        epochs.reset()
        epochs.on_run_start()
        epochs.on_advance_start()
        batches.reset()
        batches.on_run_start(epochs._data_fetcher)

    epochs.run, trainer._teardown = begin, lambda: None
    trainer.fit(module, endless(loader))
    trainer.training, trainer.state.fn = True, TrainerFn.FITTING

    def step():
        batches.advance(epochs._data_fetcher)
        batches.on_advance_end(epochs._data_fetcher)
        return {name: value.clone() for name, value in trainer.callback_metrics.items()}

    return step
