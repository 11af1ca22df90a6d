"""Text programs of the shipped test (library.py, SHIPPED), on transformers: each with one planted fault and mended."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gpu_models import Machine, Program, Step
from kinds_shipped_models import bert_settings, decoder, quiet, texts, tokenizer_of, trainer_of, trainer_steps

LONGEST = 128  # tokens of a review


class CollateToMaxLength:
    """Every batch has the same shape, whatever is in it."""

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer

    def __call__(self, rows: list[dict[str, Any]]) -> Any:
        return self.tokenizer.pad(rows, padding="max_length", max_length=LONGEST, return_tensors="pt")


def reviewed(on: Machine, fault: bool) -> Step:
    """Reviews are classified by a small encoder, which the Trainer fine-tunes."""
    quiet()
    from transformers import BertForSequenceClassification, DataCollatorWithPadding

    tokenizer = tokenizer_of(2000)
    model = BertForSequenceClassification(bert_settings(on, 2000, num_labels=3))
    encoded = tokenizer(texts(256, 10, 40, 2000), truncation=True, max_length=LONGEST, return_token_type_ids=False)
    rows = [
        {"input_ids": ids, "attention_mask": mask, "labels": place % 3}
        for place, (ids, mask) in enumerate(zip(encoded["input_ids"], encoded["attention_mask"], strict=True))
    ]
    collate = CollateToMaxLength(tokenizer) if fault else DataCollatorWithPadding(tokenizer)
    settings = {"per_device_train_batch_size": on.size(32, 8)}
    return trainer_steps(trainer_of(on, model, train_dataset=rows, data_collator=collate, settings=settings))


def masked_accuracy(predictions: Any) -> dict[str, float]:
    """For the Trainer: how many of the hidden words were guessed."""
    guessed, labels = predictions
    if guessed.ndim == 3:
        guessed = np.argmax(guessed, axis=-1)
    hidden = labels != -100
    return {"accuracy": float((guessed[hidden] == labels[hidden]).mean())}


def guesses(logits, labels):
    return logits.argmax(-1)


def evaluated(on: Machine, fault: bool) -> Step:
    """A model of masked words is evaluated by the Trainer."""
    quiet()
    from transformers import BertForMaskedLM

    words, length = on.size(30_000, 3000), on.size(256, 32)
    model = BertForMaskedLM(bert_settings(on, words, hidden_size=on.size(768, 32)))
    ids = torch.randint(len("words"), words, (on.size(256, 24), length))
    labels = ids.masked_fill(torch.rand(ids.shape) > 0.15, -100)
    rows = [{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)]
    trainer = trainer_of(
        on,
        model,
        eval_dataset=rows,
        compute_metrics=masked_accuracy,
        preprocess_logits_for_metrics=None if fault else guesses,
        settings={"per_device_eval_batch_size": on.size(64, 8)},
    )

    def step():
        return torch.tensor(trainer.evaluate()["eval_accuracy"])

    return step


def classify_each_review(classifier: Any, reviews: list[str]) -> list[dict[str, Any]]:
    return [classifier(review)[0] for review in reviews]


def classify_reviews(classifier: Any, reviews: list[str]) -> list[dict[str, Any]]:
    return classifier(reviews, batch_size=len(reviews))


def labelled(on: Machine, fault: bool) -> Step:
    """A pipeline labels what came in."""
    quiet()
    from transformers import BertForSequenceClassification, pipeline

    tokenizer = tokenizer_of(2000)
    model = BertForSequenceClassification(bert_settings(on, 2000)).eval()
    classifier = pipeline("text-classification", model=model, tokenizer=tokenizer, device=on.device)
    reviews = texts(on.size(64, 12), 12, 16, 2000)
    classify = classify_each_review if fault else classify_reviews

    def step():
        return torch.tensor([answer["score"] for answer in classify(classifier, reviews)])

    return step


def prepare_for_training(model: Any) -> None:
    """What a script does before it trains, and nobody undoes for generation."""
    model.config.use_cache = False
    model.generation_config.use_cache = False


def answer_prompts(model: Any, prompts, count: int):
    whole = torch.ones_like(prompts)
    return model.generate(
        input_ids=prompts, attention_mask=whole, do_sample=False, min_new_tokens=count, max_new_tokens=count
    )


def answered(on: Machine, fault: bool) -> Step:
    """Samples are generated between two epochs."""
    model = decoder(on, 2000)
    if fault:
        prepare_for_training(model)
    prompts = torch.randint(5, 2000, (on.size(8, 3), on.size(512, 72)), device=on.device)

    def step():
        return answer_prompts(model, prompts, on.size(32, 6))

    return step


class StopAtTexts:
    """A stopping criterion of generate: a text is done when it has one of the stop texts in what was added."""

    def __init__(self, tokenizer: Any, stops: list[str], prompt: int):
        self.tokenizer, self.stops, self.prompt = tokenizer, stops, prompt

    def added(self, row) -> str:
        text = self.tokenizer.decode(row, skip_special_tokens=True)
        asked = self.tokenizer.decode(row[: self.prompt], skip_special_tokens=True)
        return text[len(asked) :]

    def __call__(self, ids, scores, **_):
        done = [any(stop in self.added(row) for stop in self.stops) for row in ids]
        return torch.tensor(done, device=ids.device)


class StopAtLastWords(StopAtTexts):
    """Looks at as many of the last tokens as a stop text has."""

    def __call__(self, ids, scores, **_):
        new = ids[:, max(self.prompt, ids.shape[1] - 2) :]
        ends = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return torch.tensor([any(stop in end for stop in self.stops) for end in ends], device=ids.device)


def chatted(on: Machine, fault: bool) -> Step:
    """Conversations go on until somebody else would speak."""
    model, tokenizer = decoder(on, 2000, num_hidden_layers=on.size(16, 1)), tokenizer_of(2000)
    count = on.size(512, 160)
    prompts = torch.randint(5, 2000, (on.size(32, 6), count), device=on.device)
    stop = (StopAtTexts if fault else StopAtLastWords)(tokenizer, ["word3 word4", "word5 word6", "word7 word8"], count)
    whole = torch.ones_like(prompts)

    def step():
        return model.generate(
            input_ids=prompts,
            attention_mask=whole,
            do_sample=False,
            min_new_tokens=on.size(32, 8),
            max_new_tokens=on.size(32, 8),
            stopping_criteria=[stop],
        )

    return step


YES, NO = 17, 18  # tokens


def score_passages(model: Any, prompts):
    """How surely a passage answers a question: by whether the next token is yes or no."""
    logits = model(input_ids=prompts, use_cache=False).logits[:, -1, :]
    return logits[:, [NO, YES]].log_softmax(-1)[:, 1]


def score_passages_by_last_token(model: Any, prompts):
    logits = model(input_ids=prompts, use_cache=False, logits_to_keep=1).logits[:, -1, :]
    return logits[:, [NO, YES]].log_softmax(-1)[:, 1]


def reranked(on: Machine, fault: bool) -> Step:
    """Passages are ranked by a decoder's yes."""
    model = decoder(on, on.size(128_000, 6000))
    prompts = torch.randint(5, 6000, (on.size(32, 6), on.size(512, 64)), device=on.device)
    score = score_passages if fault else score_passages_by_last_token

    @torch.inference_mode()
    def step():
        return score(model, prompts)

    return step


def load_finetuned(on: Machine, merged: bool) -> Any:
    """A decoder with what was learned for it by LoRA."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=16, lora_alpha=32, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM"
    )
    model = get_peft_model(decoder(on, 2000), config).to(on.device, on.half).eval()
    return model.merge_and_unload() if merged else model


def adapted(on: Machine, fault: bool) -> Step:
    """A fine-tuned decoder reads documents."""
    model = load_finetuned(on, merged=not fault)
    documents = torch.randint(5, 2000, (on.size(16, 4), on.size(512, 64)), device=on.device)

    @torch.inference_mode()
    def step():
        return model(input_ids=documents, use_cache=False, logits_to_keep=1).logits

    return step


TRANSFORMERS = ("transformers", "tokenizers")

PROGRAMS = {
    "reviews-padded-to-max-length": Program(
        reviewed,
        ("padding",),
        near=("launch-overhead", "pointwise-unfused"),
        where=("CollateToMaxLength", "max_length", "tokenizer.pad"),
        needs=(*TRANSFORMERS, "accelerate"),
        says="every review is padded to 128 tokens, most have less than 40; pad to the longest of the batch",
    ),
    "logits-kept-for-a-metric": Program(
        evaluated,
        ("outputs-kept-whole", "host-code"),
        near=("host-compute", "whole-copies", "dominant-operator"),
        where=(
            "masked_accuracy",
            "compute_metrics",
            "nested_concat",
            "preprocess_logits_for_metrics",
            "evaluation_loop",
            "aten::cat",
        ),
        needs=(*TRANSFORMERS, "accelerate"),
        says="the Trainer gathers the scores of all words at all places, and numpy takes their largest; "
        "preprocess_logits_for_metrics leaves a number for each place",
    ),
    "reviews-through-the-pipeline-one-by-one": Program(
        labelled,
        ("small-batch", "repeated-operators"),
        near=("launch-overhead", "host-code", "host-sync"),
        where=("classify_each_review", "TextClassificationPipeline"),
        needs=TRANSFORMERS,
        says="a pipeline is called for each text of a list; it takes the list and a batch size",
    ),
    "generation-without-its-cache": Program(
        answered,
        ("recomputed-prefix",),
        near=("launch-overhead", "growing-input"),
        where=("prepare_for_training", "answer_prompts", "use_cache"),
        needs=TRANSFORMERS,
        says="the cache of keys and values was switched off for training, and stays off when samples are generated",
    ),
    "stopping-by-decoding-everything": Program(
        chatted,
        ("host-code",),
        near=("host-sync", "launch-overhead"),
        where=("StopAtTexts", "tokenizer.decode", "_decode", "stopping_criteria"),
        needs=TRANSFORMERS,
        says="for each new token all that was asked and written is decoded, for each stop text; only the last can "
        "bring a new stop text",
    ),
    "passages-scored-at-every-token": Program(
        reranked,
        ("discarded-results",),
        near=("dominant-operator",),
        where=("score_passages", "lm_head", "logits_to_keep"),
        needs=TRANSFORMERS,
        says="scores of all words are computed for each token of a prompt, and those of the last one are used; "
        "logits_to_keep=1",
    ),
    "adapters-left-unmerged": Program(
        adapted,
        ("adapters-unmerged",),
        near=("launch-overhead", "pointwise-unfused", "repeated-inputs"),
        where=("load_finetuned", "lora_A", "lora_B", "merge_and_unload"),
        needs=(*TRANSFORMERS, "peft"),
        says="a model that only answers keeps its low-rank updates apart: two more products and a sum in each layer; "
        "merge_and_unload()",
    ),
}
