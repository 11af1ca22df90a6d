"""Records a step function with firelane or torch.profiler, and diagnoses the recording."""

from pathlib import Path

import torch.profiler

import firelane
import firelane.profiler

WAIT, WARM_UP, RECORDED = 6, 1, 8  # steps; firelane times the waiting ones as the true steps


def record(step, path: Path, recorder: str = "firelane", wait: int = WAIT, recorded: int = RECORDED, **flags) -> None:
    """`path` ends in .lane for firelane, in .json for torch.profiler."""
    ours = recorder == "firelane"
    module = firelane.profiler if ours else torch.profiler
    for _ in range(3):
        step()
    with module.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=module.schedule(wait=wait, warmup=WARM_UP, active=recorded, repeat=1),
        on_trace_ready=None if ours else lambda prof: prof.export_chrome_trace(str(path)),
        **flags,
    ) as prof:
        for _ in range(wait + WARM_UP + recorded):
            step()
            prof.step()
    if ours:
        path.unlink(missing_ok=True)
        prof.save(str(path))


def diagnosis(path: Path) -> dict:
    return firelane.open(path).diagnosis


def ids(verdict: dict) -> list[str]:
    return [finding["id"] for finding in verdict["findings"]]
