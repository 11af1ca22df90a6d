"""always_on(): an always-on recording that a program starts itself."""

from __future__ import annotations

import atexit
import os

from firelane._auto import Plan

from . import outside
from .run import Always


def always_on(
    output: str | os.PathLike[str] = "firelane-run",
    budget: float = 0.005,
    keep_bytes: int = 2 << 30,
    *,
    metrics: int | str = "",
    opentelemetry: bool = False,
    signal: int | str = "",
    **options: bool,
) -> Always:
    """Records this program from now on, at no more than `budget` of its time, into a folder of at most `keep_bytes`.

    Steps are detected as by `firelane record`, or end where `.step()` is called. `options` are those of
    firelane.profile: what full steps record.

    `metrics` is a port on loopback (0: any) or the path of a Unix socket where Prometheus finds them; `opentelemetry`
    hands them to the program's meter provider. `signal` (USR2, say) asks for a recording, as trigger() does.
    """
    if not 0 < budget <= 1:
        raise ValueError(f"budget: a share of the run's time above 0 and up to 1, not {budget}")
    plan = Plan(
        output=os.path.abspath(output),
        options=options,
        quiet=True,
        metrics=outside.checked_place(str(metrics)),
        opentelemetry=opentelemetry,
        signal=str(outside.signal_number(str(signal))) if signal else "",
    )
    always = Always(plan, budget, keep_bytes)
    always.install_hooks()
    atexit.register(always.finish)
    os.register_at_fork(after_in_child=always.begin_in_child)
    return always
