"""CUDA graph annotations (torch.cuda.graph_annotations, torch 2.15) in Chrome traces.

A mapping from `graph node id` to what the program said about that node: its fields join the args of the node's kernels,
copies and memsets; a `stream` names the lane that they are shown on with graph_lanes="all".
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_LANE_NAME = "Process Group Description"


def check(annotations: Mapping[int, Any] | None, graph_lanes: str) -> None:
    if graph_lanes not in ("all", "none"):
        raise ValueError(f"graph_lanes must be 'all' or 'none', got {graph_lanes!r}")
    if graph_lanes == "all" and not annotations:
        raise ValueError(
            "graph_lanes='all' needs cuda_graph_annotations: without them every graphed event would land on "
            "default_stream, which loses the stream layout and names nothing in return"
        )


def annotate(path: str, annotations: Mapping[int, Any], graph_lanes: str, default_stream: int) -> None:
    """Rewrites the Chrome trace at `path`."""
    is_packed = path.endswith(".gz")
    with gzip.open(path, "rt") if is_packed else open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    lanes = {(e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name"}
    moved: dict[tuple[Any, Any], str | None] = {}
    flows: dict[tuple[Any, Any, Any], Any] = {}
    has_any = False
    for event in events:
        args = event.get("args", {})
        node = args.get("graph node id") if event.get("cat") in _WORK else None
        if not node:
            continue
        fields, stream, name = _fields_of(annotations.get(node))
        has_any = has_any or bool(annotations.get(node))
        args.update(fields)
        lane = event["tid"]
        if graph_lanes == "all":
            lane = stream if stream is not None else default_stream
        if lane != event["tid"]:
            flows[event["pid"], event["tid"], event["ts"]] = lane
            moved[event["pid"], lane] = name or moved.get((event["pid"], lane))
            args["original_stream"] = event["tid"]
            event["tid"] = args["stream"] = lane
        elif stream is not None:
            args["annotated_stream"] = stream
    for event in events:
        if event.get("ph") == "f" and (event["pid"], event["tid"], event["ts"]) in flows:
            event["tid"] = flows[event["pid"], event["tid"], event["ts"]]
    with_work = {(e["pid"], e["tid"]) for e in events if e.get("cat") in _WORK}
    trace["traceEvents"] = [
        e for e in events if e.get("cat") != "gpu_user_annotation" or (e["pid"], e["tid"]) in with_work
    ]
    for (pid, tid), name in moved.items():
        if (pid, tid) not in lanes:
            text = {"name": name or f"stream {tid} "}
            trace["traceEvents"].append(
                {"ph": "M", "name": "thread_name", "ts": 0, "pid": pid, "tid": tid, "args": text}
            )
    if has_any:
        trace = {"cudaGraphInlineAnnotated": True, **trace}
    with gzip.open(path, "wt") if is_packed else open(path, "w") as file:
        json.dump(trace, file)


def _fields_of(annotation: Any) -> tuple[dict[str, str], int | None, str | None]:
    fields: dict[str, str] = {}
    stream: int | None = None
    name: str | None = None
    for each in annotation if isinstance(annotation, list) else [annotation]:
        if isinstance(each, dict):
            name = name or (str(each[_LANE_NAME]) if _LANE_NAME in each else None)
            stream = int(each["stream"]) if "stream" in each else stream
            fields.update({str(key): str(value) for key, value in each.items() if key != "stream"})
    return fields, stream, name
