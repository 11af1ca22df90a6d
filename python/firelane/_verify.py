"""The part of `firelane verify` and `firelane tune` that runs inside the program.

Applies a setting that a finding asks for, or the values of knobs, without touching the program, times its steps,
writes what a step took and ends the program: what it does after the timed steps does not matter here. FIRELANE_VERIFY
holds the plan as JSON. Steps are detected as `firelane record` does it (_auto.py).
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from firelane._auto import Auto, Plan, end_process


@dataclass
class VerifyPlan:
    output: str  # gets the answer: lines of a name and a number, "changes", and a line for each
    setting: str = ""  # id of a finding; "": none
    knobs: dict[str, str] = field(default_factory=dict)  # names of KNOBS, and their values
    cores: int = 1  # that the process may use: affinity and a container's CPU limit
    steps: int = 30  # to time
    warmup: int = 5  # steps that pass first


class Applied:
    """What a setting changed in the program, to tell a setting that does nothing from one that does not help."""

    def __init__(self, cores: int = 1) -> None:
        self.cores = cores  # that the process may use
        self.changes: list[str] = []

    def note(self, change: str) -> None:
        if change not in self.changes:
            self.changes.append(change)


def begin(plan_json: str) -> None:
    """Called once torch is imported."""
    plan = VerifyPlan(**json.loads(plan_json))
    applied = Applied(plan.cores)
    if plan.setting in SETTINGS:
        SETTINGS[plan.setting](applied)
    _turn_knobs(plan.knobs, applied)
    verification = Verification(plan, applied)
    verification.install_hooks()
    import atexit

    atexit.register(verification.finish)


class Verification(Auto):
    """Counts steps as Auto does; times them instead of recording any."""

    def __init__(self, plan: VerifyPlan, applied: Applied) -> None:
        super().__init__(Plan(steps=1, quiet=True))
        self.verify, self.applied = plan, applied
        self.process = os.getpid()
        self.times_ns: list[int] = []  # of the ends of steps, from the last one of the warm-up on
        self.loader = LoaderWait()
        self.waited_ns = self.allocations = 0  # before the timed steps

    def _next_step(self) -> None:
        self.step_count += 1
        if self.step_count < self.verify.warmup:
            return
        is_edge = self.step_count in (self.verify.warmup, self.verify.warmup + self.verify.steps)
        if is_edge:
            _wait_for_device()  # steps that the host has only launched are not done
        if self.step_count == self.verify.warmup:
            self.waited_ns, self.allocations = self.loader.wait_ns, _device_allocations()
        self.times_ns.append(time.perf_counter_ns())
        if self.step_count == self.verify.warmup + self.verify.steps:
            self._write()
            end_process()

    def _finish(self) -> None:
        """The program ended by itself: what there is counts, if there is enough."""
        if os.getpid() == self.process and len(self.times_ns) > 1:
            _wait_for_device()
            self._write()

    def _write(self) -> None:
        if os.environ.get("RANK", "0") != "0":
            return
        count = len(self.times_ns) - 1
        step_ns = (self.times_ns[-1] - self.times_ns[0]) // count
        facts = {
            "step_ns": step_ns,
            "steps": count,
            "wait_ns": (self.loader.wait_ns - self.waited_ns) // count,
            "workers": self.loader.workers,
            "batch": self.loader.batch,
            "allocates": int(_device_allocations() > self.allocations),
            **_device_facts(),
        }
        partial = f"{self.verify.output}.part"
        with open(partial, "w") as file:
            lines = [f"{name} {value}" for name, value in facts.items()]
            file.write("\n".join([*lines, "changes", *self.applied.changes]) + "\n")
        os.replace(partial, self.verify.output)


class LoaderWait:
    """How long the program waits for its DataLoader, and what loader that is."""

    def __init__(self) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self.wait_ns, self.workers, self.batch = 0, -1, 0
        original: Any = _BaseDataLoaderIter.__next__

        def timed_next(iterator: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return original(iterator)
            finally:
                self.wait_ns += time.perf_counter_ns() - start
                self.workers = getattr(iterator, "_num_workers", 0)
                self.batch = getattr(getattr(iterator, "_index_sampler", None), "batch_size", 0) or 0

        _BaseDataLoaderIter.__next__ = timed_next  # type: ignore[method-assign, assignment]  # a hook


def _uses_gpu() -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _wait_for_device() -> None:
    import torch

    if _uses_gpu():
        torch.cuda.synchronize()


def _device_allocations() -> int:
    """How often the caching allocator asked the driver for memory so far."""
    import torch

    if not _uses_gpu():
        return 0
    stats = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
    return sum(each.get("num_device_alloc", 0) for each in stats)


def _device_facts() -> dict[str, int]:
    import torch

    if not _uses_gpu():
        return {"has_gpu": 0}
    peaks = [torch.cuda.max_memory_reserved(device) for device in range(torch.cuda.device_count())]
    fullest = max(range(len(peaks)), key=peaks.__getitem__)
    convolution = torch.nn.modules.conv._ConvNd
    return {
        "has_gpu": 1,
        "peak_bytes": peaks[fullest],
        "memory_bytes": torch.cuda.get_device_properties(fullest).total_memory,
        "convolutions": int(any(isinstance(each, convolution) for each in gc.get_objects())),
    }


# -- settings -----------------------------------------------------------------------------


def _with_defaults(cls: type, choose: Callable[[dict[str, Any]], dict[str, Any]], applied: Applied) -> None:
    """Makes `cls` with other arguments: `choose` gets those of the call by name, and returns what to change."""
    original: Any = cls.__init__  # type: ignore[misc]  # of the class itself
    signature = inspect.signature(original)

    @functools.wraps(original)
    def changed(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = dict(signature.bind(self, *args, **kwargs).arguments)
            given.update(given.pop("kwargs", {}))
            changes = choose(given)
        except TypeError:
            changes = {}
        if changes:
            try:
                original(self, *args, **{**kwargs, **changes})
                applied.note(f"{cls.__name__}({_named(changes)})")
                return
            except (TypeError, RuntimeError, ValueError):
                pass  # it does not go with the other arguments
        original(self, *args, **kwargs)

    cls.__init__ = changed  # type: ignore[misc]  # a hook


def _named(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in changes.items() if value is not None)


def _load_in_workers(applied: Applied) -> None:
    from torch.utils.data import DataLoader

    def choose(given: dict[str, Any]) -> dict[str, Any]:
        if given.get("num_workers", 0) > 0:
            return {"persistent_workers": True, "prefetch_factor": 4} if not given.get("persistent_workers") else {}
        changes: dict[str, Any] = {"num_workers": min(8, applied.cores), "persistent_workers": True}
        import torch

        return {**changes, "pin_memory": True} if torch.cuda.is_available() else changes

    _with_defaults(DataLoader, choose, applied)


def _turn_knobs(knobs: dict[str, str], applied: Applied) -> None:
    """What `firelane tune` tries; none of them changes what is computed. Chosen by src/compare/sweep/tune.cc."""
    from torch.utils.data import DataLoader

    if knobs.keys() & {"workers", "prefetch_factor", "pin_memory"}:
        _with_defaults(DataLoader, functools.partial(_loader_changes, knobs), applied)
    if knobs.get("cudnn_benchmark") == "1":
        _benchmark_cudnn(applied)
    if knobs.get("expandable_segments") == "1":
        _allocator(applied)


def _loader_changes(knobs: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    workers = int(knobs.get("workers", given.get("num_workers", 0)))
    if workers != given.get("num_workers", 0):
        changes["num_workers"] = workers
    if workers > 0 and not given.get("persistent_workers"):
        changes["persistent_workers"] = True
    if workers > 0 and "prefetch_factor" in knobs and int(knobs["prefetch_factor"]) != given.get("prefetch_factor"):
        changes["prefetch_factor"] = int(knobs["prefetch_factor"])
    if knobs.get("pin_memory") == "1" and not given.get("pin_memory"):
        changes["pin_memory"] = True
    return changes


def _pin_memory(applied: Applied) -> None:
    from torch.utils.data import DataLoader

    _with_defaults(DataLoader, lambda given: {} if given.get("pin_memory") else {"pin_memory": True}, applied)


def _group_optimizer(applied: Applied) -> None:
    import torch

    for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD"):
        cls = getattr(torch.optim, name)
        form = "fused" if "fused" in inspect.signature(cls.__init__).parameters else "foreach"

        def choose(given: dict[str, Any], form: str = form) -> dict[str, Any]:
            return {} if given.get(form) else {form: True} | ({"foreach": None} if form == "fused" else {})

        _with_defaults(cls, choose, applied)


def _drop_gradients(applied: Applied) -> None:
    import torch

    for cls in (torch.optim.Optimizer, torch.nn.Module):
        original: Any = cls.zero_grad

        def zero_grad(self: Any, set_to_none: bool = True, original: Any = original) -> None:
            if not set_to_none:
                applied.note("zero_grad(set_to_none=True)")
            original(self, set_to_none=True)

        cls.zero_grad = zero_grad  # type: ignore[method-assign]  # a hook


def _use_tf32(applied: Applied) -> None:
    import torch

    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    applied.note('torch.set_float32_matmul_precision("high")')


def _benchmark_cudnn(applied: Applied) -> None:
    import torch

    torch.backends.cudnn.benchmark = True
    applied.note("torch.backends.cudnn.benchmark = True")


def _without_collector(applied: Applied) -> None:
    gc.freeze()
    gc.disable()
    applied.note("gc.freeze(); gc.disable()")

    def left_out(generation: int = 2) -> int:
        applied.note("no gc.collect()")
        return 0

    gc.collect = left_out


def _fit_threads(applied: Applied) -> None:
    import torch

    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    threads = max(1, applied.cores // ranks)
    torch.set_num_threads(threads)
    applied.note(f"torch.set_num_threads({threads})")

    def kept(nthreads: int) -> None:
        """The program's own call would undo it."""

    torch.set_num_threads = kept


def _allocator(applied: Applied) -> None:
    """PYTORCH_CUDA_ALLOC_CONF is set by the command: torch reads it when it is imported."""
    if os.environ.get("PYTORCH_CUDA_ALLOC_CONF"):
        applied.note(f"PYTORCH_CUDA_ALLOC_CONF={os.environ['PYTORCH_CUDA_ALLOC_CONF']}")


# The same ids as kSettings in src/cli/verb_verify.cc.
SETTINGS: dict[str, Callable[[Applied], None]] = {
    "allocator-thrash": _allocator,
    "cpu-oversubscription": _fit_threads,
    "cudnn-benchmark": _benchmark_cudnn,
    "gc-pauses": _without_collector,
    "input-bound": _load_in_workers,
    "memory-fragmentation": _allocator,
    "pageable-copies": _pin_memory,
    "single-tensor-optimizer": _group_optimizer,
    "tensor-cores-unused": _use_tf32,
    "zero-grad-fills": _drop_gradients,
}
