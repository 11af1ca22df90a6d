"""`kineto_results.experimental_event_tree()`: every slice and allocation as nodes with torch's attribute names.

    node.name, node.tag, node.id, node.start_time_ns, node.duration_time_ns, node.start_tid, node.parent, node.children
    node.extra_fields       by tag: inputs and scope of an op, file and line of a Python frame, size of an allocation

torch's own analyses (profiler._utils, _pattern_matcher, _memory_profiler) run on these nodes: their extra_fields answer
isinstance() as torch's do. What a recording does not hold is None: which tensor an input was (`id`, `impl_ptr`), the
parameters of modules and optimizers.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.profiler._memory_profiler as torch_memory
from torch._C import _profiler as kineto

if TYPE_CHECKING:
    from firelane import Trace

_FRAME = re.compile(r"(.*)\((\d+)\): (.*)")
_DTYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "long int": torch.int64,
    "int": torch.int32,
    "short int": torch.int16,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "bool": torch.bool,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
}
_CATEGORIES = {
    "parameters": torch_memory.Category.PARAMETER,
    "optimizer state": torch_memory.Category.OPTIMIZER_STATE,
    "inputs": torch_memory.Category.INPUT,
    "temporaries": torch_memory.Category.TEMPORARY,
    "workspace": torch_memory.Category.TEMPORARY,
    "activations": torch_memory.Category.ACTIVATION,
    "gradients": torch_memory.Category.GRADIENT,
}


class _Fields:
    """Of one kind of node; isinstance() takes it for torch's class of that kind."""

    torch_class: type

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # torch's classes have no constructor
        return self.torch_class


class TensorMetadata(_Fields):
    torch_class = kineto._TensorMetadata
    impl_ptr = storage_data_ptr = id = allocation_id = None
    layout = torch.strided

    def __init__(self, dtype: str, sizes: list[int], strides: list[int], device: torch.device | None) -> None:
        self.dtype = _DTYPES.get(dtype)
        self.sizes, self.strides, self.device = sizes, strides, device


class TorchOp(_Fields):
    torch_class = kineto._ExtraFields_TorchOp
    allow_tf32_cublas = False

    def __init__(self, row: dict[str, Any], device: torch.device | None) -> None:
        self._row, self._device = row, device
        self.name: str = row["name"]
        self.sequence_number: int = -1 if row["sequence_number"] is None else row["sequence_number"]
        self.scope = kineto.RecordScope.USER_SCOPE if row["kind"] == "annotation" else kineto.RecordScope.FUNCTION
        if row["forward_thread"]:
            self.scope = kineto.RecordScope.BACKWARD_FUNCTION

    @cached_property
    def inputs(self) -> list[Any]:
        columns = ("input_types", "input_dims", "input_strides", "concrete_inputs")
        values = [json.loads(self._row[column] or "[]") for column in columns]
        return [self._input(*each) for each in zip(*values, strict=False)]

    def _input(self, dtype: str, dims: list[Any], strides: list[Any], value: str) -> Any:
        if dtype in _DTYPES:
            return TensorMetadata(dtype, dims, strides, self._device)
        if dtype == "TensorList":
            return [TensorMetadata("", *each, self._device) for each in zip(dims, strides, strict=False)]
        try:
            return json.loads(value.lower()) if dtype == "Scalar" and value else None
        except ValueError:
            return value


class PyFrameState(NamedTuple):
    file_name: str
    line_number: int
    function_name: str


def _frame(name: str) -> PyFrameState:
    parts = _FRAME.fullmatch(name)
    return PyFrameState(parts[1], int(parts[2]), parts[3]) if parts else PyFrameState("", 0, name)


class NNModuleInfo(NamedTuple):
    cls_name: str
    self_ptr: int  # which module of its class
    cls_ptr: int = 0
    parameters: tuple[Any, ...] = ()


class PyCall(_Fields):
    torch_class = kineto._ExtraFields_PyCall
    optimizer = None

    def __init__(self, name: str, caller: str) -> None:
        self.callsite, self.caller = _frame(name), _frame(caller)
        self.module: NNModuleInfo | None = None
        if name.startswith("nn.Module: "):
            cls_name, _, number = name.removeprefix("nn.Module: ").rpartition("_")
            self.module = NNModuleInfo(cls_name, int(number))


class PyCCall(_Fields):
    torch_class = kineto._ExtraFields_PyCCall

    def __init__(self, caller: str) -> None:
        self.caller = _frame(caller)


class Allocation(_Fields):
    torch_class: type = kineto._ExtraFields_Allocation

    def __init__(self, row: dict[str, Any], id: int) -> None:
        self.id = self.allocation_id = id  # each block once, however often its address is used
        self.ptr: int = row["address"]
        self.alloc_size: int = row["bytes"]
        self.total_allocated: int = row["total_allocated_bytes"] or 0
        self.total_reserved: int = row["total_reserved_bytes"] or 0
        device = ("cpu", "cuda")[row["device_type"]] if row["device_type"] < 2 else "privateuseone"
        self.device = torch.device(device) if row["device"] < 0 else torch.device(device, row["device"])


class OutOfMemory(Allocation):
    torch_class = kineto._ExtraFields_OutOfMemory


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


def event_tree(trace: Trace, zero_ns: int, has_device: bool) -> list[TreeNode]:
    """The roots, in order of their start."""
    nodes: dict[int, TreeNode] = {}
    roots: dict[int, list[TreeNode]] = {}  # by thread
    device = None if has_device else torch.device("cpu")
    for row in trace.sql(_SLICES):
        start = zero_ns + row["start_ns"]
        node = nodes[row["id"]] = TreeNode(row["id"], row["name"], start, start + row["duration_ns"], row["tid"] or 0)
        node.parent = nodes.get(-1 if row["parent"] is None else row["parent"])
        _describe(node, row, device)
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
    return sorted((node for of_thread in roots.values() for node in of_thread), key=_order)


def _order(node: TreeNode) -> tuple[int, int]:
    return node.start_time_ns, -node.end_time_ns


def _memory_nodes(trace: Trace, zero_ns: int, first_id: int) -> list[TreeNode]:
    nodes = []
    for number, (row, block) in enumerate(_blocks(trace)):
        time = zero_ns + row["time_ns"]
        node = TreeNode(first_id + number, "[memory]", time, time, row["tid"] or 0)
        node.tag, node.extra_fields = kineto._EventType.Allocation, Allocation(row, block)
        if row["kind"] == "out_of_memory":
            node.name = "[OutOfMemory]"
            node.tag, node.extra_fields = kineto._EventType.OutOfMemory, OutOfMemory(row, block)
        nodes.append(node)
    return nodes


_SLICES = """
select s.id, s.name, s.kind, s.start_ns, s.duration_ns, s.parent, l.tid, o.external_id, o.sequence_number,
       o.forward_thread, o.input_types, o.input_dims, o.input_strides, o.concrete_inputs
from host_slices s join lanes l on l.id = s.lane
left join op_details o on o.id = s.detail and s.kind in ('op', 'annotation')
where s.kind in ('op', 'annotation', 'python') order by s.lane, s.start_ns, s.duration_ns desc, s.id
"""
_MEMORY = """
select m.*, l.tid from memory_events m join lanes l on l.id = m.lane
where m.kind in ('alloc', 'free', 'out_of_memory') order by m.time_ns
"""


def _blocks(trace: Trace) -> Iterator[tuple[dict[str, Any], int]]:
    """Memory events with a number for their block: an address means another block after each free."""
    live: dict[tuple[int, int], int] = {}
    last = 0
    for row in trace.sql(_MEMORY):
        place = (row["device_type"], row["address"])
        block = live.pop(place, None) if row["kind"] == "free" else None
        if block is None:
            last += 1
            block = last
        if row["kind"] == "alloc":
            live[place] = block
        yield row, block


def _describe(node: TreeNode, row: dict[str, Any], device: torch.device | None) -> None:
    if row["kind"] != "python":
        node.tag, node.extra_fields = kineto._EventType.TorchOp, TorchOp(row, device)
        node.correlation_id = row["external_id"] or 0
        return
    caller = node.parent
    while caller is not None and caller.tag == kineto._EventType.TorchOp:
        caller = caller.parent
    name = node.name if caller is None else caller.name
    if node.name.startswith("<"):
        node.tag, node.extra_fields = kineto._EventType.PyCCall, PyCCall(name)
    else:
        node.tag, node.extra_fields = kineto._EventType.PyCall, PyCall(node.name, name)


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


def memory_profile(results: Any, trace: Trace) -> torch_memory.MemoryProfile:
    """torch's MemoryProfile over our nodes, with the categories of our own analysis (docs/analyses.md, "memory")."""
    profile = torch_memory.MemoryProfile(results)
    by_event = dict(
        zip(
            (row["id"] for row in trace.sql("select id from memory_events order by id")),
            trace._memory_categories(),
            strict=True,
        )
    )
    for row, block in _blocks(trace):
        category = _CATEGORIES.get(by_event.get(row["id"], ""))
        if category is not None and row["kind"] == "alloc":
            profile._categories._values[block].by_id = category
    return profile
