"""Frameworks that use torch.profiler themselves: the same program under torch.profiler and under firelane.profiler.

They are not needed for anything else, so each test only runs where its framework is installed. docs/profiler.md lists
the versions that were tested.
"""

import collections
import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import firelane

SCHEDULE = {"wait": 1, "warmup": 1, "active": 2, "repeat": 2}


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def counted(events):
    return collections.Counter(event.name for event in events if event.name != "[memory]")


def written(folder):
    """File names without times and pids -> contents: names of ops and ranges, or whether there are any lines."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = re.sub(r"\d{5,}|_\d+(?=\.)", "#", path.name)
        if path.suffix == ".json":
            events = json.loads(path.read_text())["traceEvents"]
            kept = [e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation")]
            files.setdefault(name, []).append(collections.Counter(kept))
        else:
            files.setdefault(name, []).append(bool(path.read_text().strip()))
    return files


@pytest.fixture
def under_both(tmp_path, recwarn):
    """Calls run(folder) under torch.profiler, then after install(); the results must be equal."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def compare(run):
        run(tmp_path / "first")  # fills caches and lazy state
        theirs = run(tmp_path / "torch"), written(tmp_path / "torch")
        recwarn.clear()
        firelane.install()
        try:
            ours = run(tmp_path / "firelane"), written(tmp_path / "firelane")
        finally:
            firelane.uninstall()
        assert ours == theirs
        package = str(Path(firelane.__file__).parent)
        assert theirs[0] and not [str(w.message) for w in recwarn if w.filename.startswith(package)]

    yield compare
    torch.set_num_threads(threads)


@pytest.mark.parametrize("batches", [8, 2], ids=["scheduled", "too_few_steps_for_the_schedule"])
def test_lightning_pytorch_profiler(under_both, batches):
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.profilers import PyTorchProfiler

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = small_net()

        def training_step(self, batch, _):
            return self.net(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def run(folder):
        profiler = PyTorchProfiler(dirpath=folder, filename="perf", record_shapes=True)
        trainer = lightning.Trainer(
            max_epochs=1, profiler=profiler, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, limit_train_batches=batches,
        )  # fmt: skip
        data = torch.utils.data.TensorDataset(torch.ones(32, 8))
        trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=4))
        profiler.summary()
        return counted(profiler.function_events)

    under_both(run)


def test_transformers_trainer_and_generate(under_both):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")  # the Trainer needs it
    config = transformers.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                     bos_token_id=0, eos_token_id=63, pad_token_id=63)  # fmt: skip

    class Steps(transformers.TrainerCallback):
        def __init__(self, prof):
            self.prof = prof

        def on_step_end(self, *_, **__):
            self.prof.step()

    def run(folder):
        api = torch.profiler
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(config)
        rows = [{"input_ids": torch.arange(16), "labels": torch.arange(16)} for _ in range(64)]
        arguments = transformers.TrainingArguments(
            output_dir=str(folder / "run"), per_device_train_batch_size=4, max_steps=8, report_to=[],
            save_strategy="no", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        with api.profile(
            activities=[api.ProfilerActivity.CPU], schedule=api.schedule(**SCHEDULE), record_shapes=True,
            with_stack=True, profile_memory=True,
            on_trace_ready=api.tensorboard_trace_handler(str(folder / "log"), "worker"),
        ) as prof:  # fmt: skip
            transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Steps(prof)]).train()
        flags = {"record_shapes": True, "with_flops": True, "profile_memory": True}
        with api.profile(activities=[api.ProfilerActivity.CPU], **flags) as generating, torch.no_grad():
            model.eval().generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4, do_sample=False)
        rows = [(r.key, r.count, r.flops, r.cpu_memory_usage) for r in generating.key_averages() if r.key != "[memory]"]
        return counted(prof.events()), sorted(rows)

    under_both(run)


def test_accelerate_profile_kwargs(under_both):
    accelerate = pytest.importorskip("accelerate")

    def run(folder):
        steps = []
        kwargs = accelerate.ProfileKwargs(
            activities=["cpu"], schedule_option=SCHEDULE, record_shapes=True, profile_memory=True, with_stack=True,
            with_flops=True, output_trace_dir=str(folder), on_trace_ready=lambda prof: steps.append(prof.step_num),
        )  # fmt: skip
        accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[kwargs])
        net = small_net()
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        data = torch.utils.data.DataLoader(torch.ones(40, 8), batch_size=4)
        net, optimizer, data = accelerator.prepare(net, optimizer, data)
        with accelerator.profile() as prof:
            for batch in data:
                optimizer.zero_grad()
                accelerator.backward(net(batch).sum())
                optimizer.step()
                prof.step()
        return steps, counted(prof.events())

    under_both(run)
