"""always_on(): an always-on recording that a program starts itself."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence

from firelane._auto import Plan
from firelane._metrics import metric_options

from . import outside
from .run import Always


def always_on(
    output: str | os.PathLike[str] = "firelane-run",
    budget: float = 0.005,
    keep_bytes: int = 2 << 30,
    *,
    prometheus: int | str = "",
    opentelemetry: bool = False,
    signal: int | str = "",
    metrics: bool | Sequence[str] = False,
    metric_interval_ms: float = 1.0,
    **options: bool,
) -> Always:
    """Records this program from now on, at no more than `budget` of its time, into a folder of at most `keep_bytes`.

    Steps are detected as by `firelane record`, or end where `.step()` is called. `options` are those of
    firelane.profile: what full steps record.

    `prometheus` is a port on loopback (0: any) or the path of a Unix socket where metrics are served; `opentelemetry`
    hands them to the program's meter provider. `signal` (USR2, say) asks for a recording, as trigger() does.
    """
    if not 0 < budget <= 1:
        raise ValueError(f"budget: a share of the run's time above 0 and up to 1, not {budget}")
    plan = Plan(
        output=os.path.abspath(output),
        options={**options, **metric_options(metrics, metric_interval_ms)},
        quiet=True,
        prometheus=outside.checked_place(str(prometheus)),
        opentelemetry=opentelemetry,
        signal=str(outside.signal_number(str(signal))) if signal else "",
    )
    always = Always(plan, budget, keep_bytes)
    always.install_hooks()
    atexit.register(always.finish)
    os.register_at_fork(after_in_child=always.begin_in_child)
    return always
