"""The operations of a published job (StragglerAnalysis, OSDI 2025) as a graph that Firelane replays: for tests only.

One row of the table is an operation of one rank in one step. Which operation waits for which follows from 1F1B pipeline
parallelism with synchronous data parallelism, the same in every step:

  computing runs one after another; sends and receives of each direction are a stream of their own
  a receive stands between two computations of its direction, a send follows its own
  the first computation waits for the gathered parameters
  after the last: garbage collection, layer norm's and embedding's gradients, reduce-scatter, clipping, optimizer
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STREAMS = ("forward-send", "forward-recv", "backward-send", "backward-recv")
# Of these, durations vary by what the network does: the ideal is the median.
COMMUNICATION = (
    *STREAMS,
    "params-all-gather",
    "grads-reduce-scatter",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "optimizer-clip-main-grad",
)
NEGATIVE_S = -0.01  # a transfer that ends this much before the last start is a mistake of the clocks


@dataclass
class Graph:
    kind: list[int] = field(default_factory=list)
    sync: list[int] = field(default_factory=list)
    communicates: list[bool] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    step: list[int] = field(default_factory=list)


def read_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def order_of(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[tuple[str, int]]:
    chosen = [row for row in rows if row["optype"] in kinds]
    chosen.sort(key=lambda row: (row["start_ts"], row["seq_id"], row["optype"]))
    return [(row["optype"], row["seq_id"]) for row in chosen]


def stage_dependencies(rows: list[dict[str, Any]]) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Of one stage of one replica in one step: each operation and what must have ended."""
    after: dict[tuple[str, int], list[tuple[str, int]]] = {(row["optype"], row["seq_id"]): [] for row in rows}

    def chain(names: list[tuple[str, int]]) -> None:
        for before, then in itertools.pairwise(names):
            after[then].append(before)

    compute = order_of(rows, ("forward-compute", "backward-compute"))
    chain(compute)
    for stream in STREAMS:
        chain(order_of(rows, (stream,)))
    for direction in ("forward", "backward"):
        for _, number in order_of(rows, (f"{direction}-recv",)):
            after[f"{direction}-compute", number].append((f"{direction}-recv", number))
            if number > 0:
                after[f"{direction}-recv", number].append((f"{direction}-compute", number - 1))
        for _, number in order_of(rows, (f"{direction}-send",)):
            after[f"{direction}-send", number].append((f"{direction}-compute", number))
    first_backward = next(i for i, (kind, _) in enumerate(compute) if kind == "backward-compute")
    if first_backward >= 2:
        for kind in ("backward-recv", "backward-send"):
            if (kind, 0) in after:
                after[kind, 0].append(compute[first_backward - 2])
    chain(order_of(rows, ("params-all-gather", "grads-reduce-scatter")))
    if ("params-all-gather", 0) in after:
        first = next(name for name in compute if name[0] == "forward-compute")
        after[first].append(order_of(rows, ("params-all-gather",))[-1])
    last = max(
        (row for row in rows if row["optype"] in ("forward-compute", "backward-compute")),
        key=lambda row: row["start_ts"] + row["duration"],
    )
    ending = [(last["optype"], last["seq_id"])]
    for kind in ("gc", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "grads-reduce-scatter"):
        ending += order_of(rows, (kind,))
    ending += [("optimizer-clip-main-grad", 0), ("optimizer", 0)]
    chain(ending)
    return after


def sync_of(row: dict[str, Any], last_stage: int) -> tuple[Any, ...] | None:
    """Operations with the same key move together."""
    kind, stage, step, replica = row["optype"], row["stage"], row["step"], row["dp_rank"]
    if kind in ("params-all-gather", "grads-reduce-scatter"):
        return kind, step, stage, row["seq_id"]
    if kind == "optimizer-clip-main-grad":
        return kind, step
    if kind == "embedding-grads-all-reduce":
        return (kind, step, replica) if last_stage > 0 else None
    if kind in STREAMS:
        direction, way = kind.split("-")
        forward = 1 if direction == "forward" else -1
        sender = stage if way == "send" else stage - forward
        return direction, step, replica, sender, row["seq_id"]
    return None


def make_graph(rows: list[dict[str, Any]]) -> Graph:
    """All steps and replicas; the order of one replica's first step holds for all."""
    stages = max(row["stage"] for row in rows) + 1
    first_step = min(row["step"] for row in rows)
    pattern = {
        stage: stage_dependencies(
            [r for r in rows if r["step"] == first_step and r["dp_rank"] == 0 and r["stage"] == stage]
        )
        for stage in range(stages)
    }
    index = {(row["step"], row["dp_rank"], row["stage"], row["optype"], row["seq_id"]): i for i, row in enumerate(rows)}
    kinds = {kind: i for i, kind in enumerate(sorted({row["optype"] for row in rows}))}
    keys = [sync_of(row, stages - 1) for row in rows]
    numbers: dict[tuple[Any, ...], int] = {}
    last_start: dict[tuple[Any, ...], float] = {}
    for row, key in zip(rows, keys, strict=True):
        if key is not None:
            numbers.setdefault(key, len(numbers))
            last_start[key] = max(last_start.get(key, row["start_ts"]), row["start_ts"])
    graph = Graph()
    for row, key in zip(rows, keys, strict=True):
        duration = row["duration"]
        if key is not None:
            duration = row["start_ts"] + row["duration"] - last_start[key]
            duration = 0.0 if duration <= NEGATIVE_S else duration
        place = row["step"], row["dp_rank"], row["stage"]
        graph.kind.append(kinds[row["optype"]])
        graph.sync.append(-1 if key is None else numbers[key])
        graph.communicates.append(row["optype"] in COMMUNICATION)
        names = pattern[row["stage"]][row["optype"], row["seq_id"]]
        graph.after.append([index[place + tuple(name)] for name in names])
        graph.durations.append(duration)
        graph.step.append(row["step"])
    return graph


def mean_step(graph: Graph, ends: list[float]) -> float:
    last: dict[int, float] = {}
    for step, end in zip(graph.step, ends, strict=True):
        last[step] = max(last.get(step, 0.0), end)
    return sum(last.values()) / len(last)
