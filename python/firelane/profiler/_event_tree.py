"""`kineto_results.experimental_event_tree()`: every slice and allocation as nodes with torch's attribute names.

    node.name, node.tag, node.id, node.start_time_ns, node.duration_time_ns, node.start_tid, node.parent, node.children
    node.extra_fields       by tag: inputs and scope of an op, file and line of a Python frame, size of an allocation

torch's own analyses (profiler._utils, _pattern_matcher, _memory_profiler) run on these nodes: their extra_fields answer
isinstance() as torch's do. Which tensor an input was (`id`, `impl_ptr`) and what modules and optimizers hold are
known with profile_memory and, respectively, record_shapes or with_stack (_tensors.py); without, they are None.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._C import _profiler as kineto

from ._tensors import assign_ids, tensors_of
from ._tree_fields import Allocation, OutOfMemory, Owner, PyCall, PyCCall, TensorMetadata, TorchOp, frame_of

if TYPE_CHECKING:
    from firelane import Trace


class TreeNode:
    """One node, with the attribute names of torch._C._profiler._ProfilerEvent."""

    finished = True

    def __init__(self, id: int, name: str, start_ns: int, end_ns: int, tid: int) -> None:
        self.id = id
        self.name = name
        self.start_time_ns, self.end_time_ns = start_ns, end_ns
        self.duration_time_ns = end_ns - start_ns
        self.start_tid = tid
        self.correlation_id = 0
        self.parent: TreeNode | None = None
        self.children: list[TreeNode] = []
        self.tag: Any = kineto._EventType.Kineto
        self.extra_fields: Any = None

    @property
    def typed(self) -> tuple[Any, Any]:
        return self.tag, self.extra_fields

    def __repr__(self) -> str:
        return f"<{self.name}>"


Owners = Sequence[tuple[str | None, Owner]]  # modules by the name of their slices; None: a step of an optimizer


def event_tree(
    trace: Trace, zero_ns: int, has_device: bool, owners: Owners = (), collections: bool = True
) -> list[TreeNode]:
    """The roots, in order of their start."""
    modules = {name: owner for name, owner in owners if name is not None}
    nodes: dict[int, TreeNode] = {}
    left_out: dict[int, TreeNode | None] = {}  # collections, and what they are in
    roots: dict[int, list[TreeNode]] = {}  # by thread
    device = None if has_device else torch.device("cpu")
    has_tensors = False
    for row in trace.sql(_SLICES):
        has_tensors = has_tensors or row["tensors"] is not None
        parent = -1 if row["parent"] is None else row["parent"]
        around = left_out[parent] if parent in left_out else nodes.get(parent)
        is_collection = row["name"].startswith("gc: generation ")
        if is_collection and not collections:
            left_out[row["id"]] = around
            continue
        name = "Python GC" if is_collection else row["name"]
        start = zero_ns + row["start_ns"]
        node = nodes[row["id"]] = TreeNode(row["id"], name, start, start + row["duration_ns"], row["tid"] or 0)
        node.parent = around
        if node.parent is None and row["is_async"]:  # a range that was never closed lasts longer than what it is in
            node.parent = _open_at(roots.get(node.start_tid, []), start)
        _describe(node, row, device, modules)
        siblings = roots.setdefault(node.start_tid, []) if node.parent is None else node.parent.children
        siblings.append(node)
    memory = _memory_nodes(trace, zero_ns, first_id=max(nodes, default=-1) + 1)
    for node in memory:
        node.parent = _open_at(roots.get(node.start_tid, []), node.start_time_ns)
    for node in memory:
        siblings = roots.setdefault(node.start_tid, []) if node.parent is None else node.parent.children
        siblings.append(node)
    for node in nodes.values() if memory else ():
        node.children.sort(key=_order)
    _set_optimizers(nodes.values(), [owner for name, owner in owners if name is None])
    if memory or owners or has_tensors:
        assign_ids(_tensors_in_order([*nodes.values(), *memory]))
    return sorted((node for of_thread in roots.values() for node in of_thread), key=_order)


def _order(node: TreeNode) -> tuple[int, int]:
    return node.start_time_ns, -node.end_time_ns


def _set_optimizers(nodes: Iterable[TreeNode], steps: Sequence[Owner]) -> None:
    """torch calls this function after each step, for profilers to see the optimizer."""
    calls = [node for node in nodes if node.name.endswith(": _optimizer_step_code")]
    for node, optimizer in zip(sorted(calls, key=_order), steps, strict=False):
        node.extra_fields.optimizer = optimizer


def _tensors_in_order(nodes: Sequence[TreeNode]) -> Iterator[TensorMetadata | Allocation]:
    """Owners are described once, when they are first seen."""
    seen: set[int] = set()
    for node in sorted(nodes, key=_order):
        if node.tag == kineto._EventType.TorchOp:
            yield from node.extra_fields.tensors()
        elif node.tag == kineto._EventType.Allocation:
            yield node.extra_fields
        elif node.tag == kineto._EventType.PyCall:
            owner = node.extra_fields.module or node.extra_fields.optimizer
            if owner is not None and id(owner) not in seen:
                seen.add(id(owner))
                yield from tensors_of(owner)


def _memory_nodes(trace: Trace, zero_ns: int, first_id: int) -> list[TreeNode]:
    nodes = []
    for number, row in enumerate(trace.sql(_MEMORY)):
        time = zero_ns + row["time_ns"]
        node = TreeNode(first_id + number, "[memory]", time, time, row["tid"] or 0)
        node.tag, node.extra_fields = kineto._EventType.Allocation, Allocation(row)
        if row["kind"] == "out_of_memory":
            node.name = "[OutOfMemory]"
            node.tag, node.extra_fields = kineto._EventType.OutOfMemory, OutOfMemory(row)
        nodes.append(node)
    return nodes


_SLICES = """
select s.id, s.name, s.kind, s.start_ns, s.duration_ns, s.parent, s.call_line, l.tid, o.external_id, o.sequence_number,
       o.forward_thread, o.input_types, o.input_dims, o.input_strides, o.concrete_inputs, o.tensors, o.is_async
from host_slices s join lanes l on l.id = s.lane
left join op_details o on o.id = s.detail and s.kind in ('op', 'annotation')
where s.kind in ('op', 'annotation', 'python') order by s.lane, s.start_ns, s.duration_ns desc, s.id
"""
_MEMORY = """
select m.*, l.tid from memory_events m join lanes l on l.id = m.lane
where m.kind in ('alloc', 'free', 'out_of_memory') order by m.time_ns
"""


def _describe(node: TreeNode, row: dict[str, Any], device: torch.device | None, modules: Mapping[str, Owner]) -> None:
    if row["kind"] != "python":
        node.tag, node.extra_fields = kineto._EventType.TorchOp, TorchOp(row, device)
        node.correlation_id = row["external_id"] or 0
        if node.parent is not None and node.parent.name == f"autograd::engine::evaluate_function: {node.name}":
            node.extra_fields.scope = kineto.RecordScope.BACKWARD_FUNCTION
        return
    caller = node.parent
    while caller is not None and caller.tag != kineto._EventType.PyCall:
        caller = caller.parent
    called_by = frame_of(node.name if caller is None else caller.name, row["call_line"])
    if node.name.startswith("<"):
        node.tag, node.extra_fields = kineto._EventType.PyCCall, PyCCall(called_by)
    else:
        node.tag, node.extra_fields = kineto._EventType.PyCall, PyCall(node.name, called_by, modules)


def _open_at(level: list[TreeNode], time_ns: int) -> TreeNode | None:
    """The innermost slice that was open then; `level` is in order of time."""
    found: TreeNode | None = None
    while level:
        place = bisect.bisect_right(level, time_ns, key=lambda node: node.start_time_ns) - 1
        if place < 0 or level[place].end_time_ns < time_ns:
            break
        found = level[place]
        level = found.children
    return found
