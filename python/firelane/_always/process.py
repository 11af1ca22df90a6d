"""What an always-on recording asks of the process that it runs in, and of its windows."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path


def last_exception() -> str:
    error = getattr(sys, "last_value", None)
    return "".join(traceback.format_exception_only(error)).strip() if error is not None else ""


def memory() -> tuple[int, int]:
    """Resident bytes of the process, and bytes that torch has allocated on the current GPU."""
    import torch

    try:
        with open("/proc/self/statm") as file:
            rss = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        rss = -1
    cuda = torch.cuda.memory_allocated() if torch.cuda.is_initialized() else -1
    return rss, cuda


def summary_of(window: Path) -> str:
    """A few KB of a window that has to go."""
    import firelane

    trace = firelane.open(window)
    kernels = trace.sql(
        "select name, count(*) as count, sum(duration_ns) as ns from device_slices where kind = 'kernel' "
        "group by name order by ns desc limit 20"
    )
    ops = trace.sql(
        "select name, count(*) as count, sum(duration_ns) as ns from host_slices where kind = 'op' and depth <= 1 "
        "group by name order by ns desc limit 20"
    )
    return json.dumps(
        {
            "window": window.name,
            "verdict": trace._short_verdict(color=False),
            "kernels": [dict(row) for row in kernels],
            "ops": [dict(row) for row in ops],
        }
    )


def folder_for_this_process(output: Path) -> Path:
    """RUN; RUN/rank3 with ranks; RUN/pid77 for further processes of a program."""
    from firelane.profiler import _ranks

    rank = _ranks.rank()
    if rank is not None:
        folder = output / f"rank{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    try:
        output.mkdir(parents=True)
        return output
    except FileExistsError:
        folder = output / f"pid{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
