"""The numbers of an always-on recording that dashboards and alerts read: each declared once, in SPECS.

They are made from what every step leaves anyway, by the writer's thread; what only a window can know (how busy the GPU
was, its power) is that of the newest one. `text()` is Prometheus' text format; telemetry.py hands the same numbers to
OpenTelemetry. docs/always.md has the table, and contrib/grafana-always-on.json draws them.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Literal

BUCKETS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0),
)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KINDS = ("slow", "hang", "memory", "out-of-memory", "exception", "trigger", "signal")
_PHASES = ("unrecorded", "warmup", "light", "recorded")


@dataclass(frozen=True)
class Spec:
    """One metric. A name ends in its unit, and in _total if it only grows, as Prometheus wants it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    label: str = ""  # what its series differ by


SPECS = (
    Spec("firelane_run_info", "gauge", "Always 1; the folder that is recorded into.", "run"),
    Spec("firelane_step_seconds", "histogram", "Host time of a step, for steps that were not recorded."),
    Spec("firelane_steps_total", "counter", "Steps, by what was recorded about them.", "phase"),
    Spec("firelane_since_step_seconds", "gauge", "Time since the last step ended: it grows while the program hangs."),
    Spec("firelane_wait_seconds_total", "counter", "Time in which the training thread waited, by cause.", "cause"),
    Spec("firelane_cpu_seconds_total", "counter", "Time that the training thread ran on a core."),
    Spec("firelane_samples_total", "counter", "Samples that the program has trained on, where they are known."),
    Spec("firelane_tokens_total", "counter", "Tokens that the program has trained on, where they are known."),
    Spec("firelane_resident_memory_bytes", "gauge", "Resident memory of the process."),
    Spec("firelane_cuda_allocated_bytes", "gauge", "Memory that torch has allocated on the current GPU."),
    Spec("firelane_device_busy_ratio", "gauge", "Share of a step in which the GPU was busy, in the newest window."),
    Spec("firelane_device_time_ratio", "gauge", "Shares of a step on the GPU, in the newest window; sum: 1.", "part"),
    Spec("firelane_device_power_watts", "gauge", "Power of the GPU in the newest window.", "gpu"),
    Spec("firelane_recorder_seconds_total", "counter", "Cost of recording, by purpose.", "part"),
    Spec("firelane_recorder_run_seconds_total", "counter", "Time of all steps, which the budget is a share of."),
    Spec("firelane_recorder_spent_ratio", "gauge", "Share of the time that recording has cost so far."),
    Spec("firelane_recorder_budget_ratio", "gauge", "Share of the time that recording may cost."),
    Spec("firelane_recorder_windows_total", "counter", "Windows of steps that were recorded in detail."),
    Spec("firelane_recorder_write_errors_total", "counter", "Files that could not be written."),
    Spec("firelane_recorder_dropped_lines_total", "counter", "Lines of the step log that were lost."),
    Spec("firelane_incidents_total", "counter", "Incidents, by kind.", "kind"),
)

# The series of each metric: the label's value ("" without a label), and the number.
Values = dict[str, list[tuple[str, float]]]


class Metrics:
    """Counts steps. Written by the writer's thread, read by whoever serves them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BUCKETS_S) + 1)
        self._sum_s = 0.0
        self._steps = dict.fromkeys(_PHASES, 0)
        self._waits = {"input": 0, "garbage_collection": 0, "saving": 0, "blocked": 0}
        self._cpu_ns = 0
        self._window: Values = {}
        self.on_line: Callable[[float], object] | None = None  # seconds of a step; once for steps timed together

    def observe(
        self, duration_ns: int, count: int, phase: str, cpu_ns: int, gc_ns: int, input_ns: int, save_ns: int
    ) -> None:
        """Steps of one line of the log, whose times are sums."""
        with self._lock:
            self._steps[phase] = self._steps.get(phase, 0) + count
            self._cpu_ns += cpu_ns
            self._waits["input"] += input_ns
            self._waits["garbage_collection"] += gc_ns
            self._waits["saving"] += save_ns
            # Off its core without a cause that we timed: a lock, another rank, the GPU, or a core that others had.
            self._waits["blocked"] += max(0, duration_ns - cpu_ns - input_ns - save_ns)
            if phase != "unrecorded":
                return
            each_s = duration_ns / count / 1e9
            self._counts[bisect.bisect_left(BUCKETS_S, each_s)] += count
            self._sum_s += duration_ns / 1e9
        if self.on_line is not None:
            self.on_line(each_s)

    def see_window(self, path: Path) -> None:
        """What only a recording in detail can know."""
        found = window_values(path)
        with self._lock:
            self._window = found

    def step_values(self) -> Values:
        with self._lock:
            return {
                "firelane_steps_total": [(phase, count) for phase, count in self._steps.items()],
                "firelane_wait_seconds_total": [(cause, ns / 1e9) for cause, ns in self._waits.items()],
                "firelane_cpu_seconds_total": [("", self._cpu_ns / 1e9)],
                **self._window,
            }

    def histogram(self) -> tuple[list[int], float]:
        """Steps in each bucket and above the last, and the sum of their times in seconds."""
        with self._lock:
            return list(self._counts), self._sum_s


def window_values(path: Path) -> Values:
    """How busy the GPU was, with what, and its power. Empty without a GPU."""
    import firelane

    trace = firelane.open(path, threads=1)  # ours: its time is counted as the recorder's
    parts = [
        (str(row["part"]), float(row["share_percent"]) / 100)
        for row in trace.breakdown(table="parts")
        if row["side"] == "device"
    ]
    power = [
        (str(row["name"]).split()[1], float(row["watts"]))
        for row in trace.sql(
            "select t.name as name, avg(s.value) as watts from counter_samples s join counter_tracks t "
            "on s.track = t.id where t.name like 'GPU % power (W)' group by t.name order by t.name"
        )
    ]
    values: Values = {}
    if parts:
        idle = sum(share for part, share in parts if part.startswith("idle"))
        values["firelane_device_time_ratio"] = parts
        values["firelane_device_busy_ratio"] = [("", 1 - idle)]
    if power:
        values["firelane_device_power_watts"] = power
    return values


def work_in(loader: Any, batch: Any) -> tuple[int, int]:
    """Samples and tokens of a DataLoader's batch; 0: not known. Tokens are those of `input_ids`, padding included."""
    import torch

    if not getattr(loader, "_auto_collation", False):  # the program makes its own batches
        return 0, 0
    if isinstance(batch, Mapping):
        ids = batch.get("input_ids")
        tokens = int(ids.numel()) if isinstance(ids, torch.Tensor) else 0
        batch = next(iter(batch.values()), None)
    else:
        tokens = 0
        if isinstance(batch, (list, tuple)) and batch:
            batch = batch[0]
    if isinstance(batch, torch.Tensor) and batch.dim() > 0:
        return int(batch.shape[0]), tokens
    return (len(batch), tokens) if isinstance(batch, (list, tuple)) else (0, tokens)


# -- Prometheus' text format ----------------------------------------------------------------


def text(values: Values, histogram: tuple[list[int], float], labels: Mapping[str, str]) -> str:
    """All metrics that have a value. `labels` are those of every series."""
    out: list[str] = []
    for spec in SPECS:
        if spec.kind != "histogram" and spec.name not in values:
            continue
        out.append(f"# HELP {spec.name} {spec.help}\n# TYPE {spec.name} {spec.kind}\n")
        if spec.kind == "histogram":
            out += _histogram_lines(spec.name, *histogram, labels)
            continue
        for label, value in values[spec.name]:
            own = {**labels, spec.label: label} if spec.label else labels
            out.append(f"{spec.name}{_labels(own)} {_number(value)}\n")
    return "".join(out)


def _histogram_lines(name: str, counts: list[int], sum_s: float, labels: Mapping[str, str]) -> Iterable[str]:
    total = 0
    for bound, count in zip((*map(_number, BUCKETS_S), "+Inf"), counts, strict=True):
        total += count
        yield f"{name}_bucket{_labels({**labels, 'le': bound})} {total}\n"
    yield f"{name}_sum{_labels(labels)} {_number(sum_s)}\n{name}_count{_labels(labels)} {total}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    clean = value.encode(errors="replace").decode()  # a path may have bytes that are no UTF-8
    return clean.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
