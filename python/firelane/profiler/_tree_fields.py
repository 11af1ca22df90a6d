"""What a node of the event tree says about itself: torch._C._profiler's field classes, by tag.

isinstance() takes each for torch's class of that name, which has no constructor. What was not recorded is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from torch._C import _profiler as kineto

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
    "c10::complex<c10::Half>": torch.complex32,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
    "c10::Float8_e5m2": torch.float8_e5m2,
    "c10::Float8_e4m3fn": torch.float8_e4m3fn,
    "c10::Float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "c10::Float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "c10::qint8": torch.qint8,
    "c10::quint8": torch.quint8,
    "c10::qint32": torch.qint32,
    "short unsigned int": torch.uint16,
    "unsigned int": torch.uint32,
    "long unsigned int": torch.uint64,
}
_LAYOUTS: dict[int, torch.layout] = {  # c10::Layout
    1: torch.sparse_coo,
    2: torch.sparse_csr,
    3: torch._mkldnn,  # type: ignore[attr-defined]  # torch's types do not declare it
    4: torch.sparse_csc,
    5: torch.sparse_bsr,
    6: torch.sparse_bsc,
    7: torch.jagged,
}
_DEVICES = {0: "cpu", 1: "cuda", 9: "meta", 12: "xpu", 13: "mps"}  # c10::DeviceType


class _Fields:
    """Of one kind of node; isinstance() takes it for torch's class of that kind."""

    torch_class: type

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # torch's classes have no constructor
        return self.torch_class


class TensorMetadata(_Fields):
    """`id` and `allocation_id` are _tensors.py's; None, as the addresses, in recordings that do not hold them."""

    torch_class = kineto._TensorMetadata
    id: int | None = None
    allocation_id: int | None = None

    def __init__(
        self,
        dtype: torch.dtype | None,
        sizes: list[int],
        strides: list[int],
        device: torch.device | None,
        *,
        impl_ptr: int | None = None,
        storage_data_ptr: int | None = None,
        layout: torch.layout = torch.strided,
    ) -> None:
        self.dtype, self.sizes, self.strides, self.device, self.layout = dtype, sizes, strides, device, layout
        self.impl_ptr = impl_ptr
        self.storage_data_ptr = storage_data_ptr or None


class TorchOp(_Fields):
    torch_class = kineto._ExtraFields_TorchOp
    allow_tf32_cublas = False

    def __init__(self, row: dict[str, Any], device: torch.device | None) -> None:
        self._row, self._device = row, device
        self.name: str = row["name"]
        self.sequence_number: int = -1 if row["sequence_number"] is None else row["sequence_number"]
        self.scope = kineto.RecordScope.USER_SCOPE if row["kind"] == "annotation" else kineto.RecordScope.FUNCTION

    @cached_property
    def inputs(self) -> list[Any]:
        columns = ("input_types", "input_dims", "input_strides", "concrete_inputs", "tensors")
        types, dims, strides, values, tensors = (json.loads(self._row[column] or "[]") for column in columns)
        tensors += [None] * (len(types) - len(tensors))  # those of ops without any, and what did not fit
        return [self._input(*each) for each in zip(types, dims, strides, values, tensors, strict=False)]

    def tensors(self) -> Iterator[TensorMetadata]:
        for value in self.inputs:
            for tensor in value if isinstance(value, list) else (value,):
                if type(tensor) is TensorMetadata:
                    yield tensor

    def _input(self, dtype: str, dims: list[Any], strides: list[Any], value: str, tensor: list[Any] | None) -> Any:
        if dtype == "TensorList":
            return [self._tensor(None, *each) for each in zip_longest(dims, strides, tensor or ())]
        if dtype in _DTYPES or tensor:
            return self._tensor(_DTYPES.get(dtype), dims, strides, tensor)
        return _number(value) if dtype == "Scalar" else None

    def _tensor(
        self, dtype: torch.dtype | None, dims: list[int], strides: list[int], tensor: list[Any] | None
    ) -> TensorMetadata:
        layout = torch.strided if len(strides or ()) == len(dims or ()) else torch.sparse_coo
        if not tensor:
            return TensorMetadata(dtype, dims, strides, self._device, layout=layout)
        address, storage, kind, index, dtype_name, *layouts = tensor  # a layout where it is not strided
        return TensorMetadata(
            _DTYPES.get(dtype_name),
            dims,
            strides,
            device_of(kind, index),
            impl_ptr=address,
            storage_data_ptr=storage,
            layout=_LAYOUTS.get(layouts[0], layout) if layouts else layout,
        )


def device_of(kind: int, index: int) -> torch.device:
    name = _DEVICES.get(kind, "privateuseone")
    return torch.device(name) if index < 0 else torch.device(name, index)


def _number(text: str) -> bool | int | float | None:
    """As torch prints it: 1, 2.5, 1., inf, True."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


_MODULE_FILE = f"{torch.nn.Module.__module__.replace('.', '/')}.py"


class PyFrameState(NamedTuple):
    file_name: str
    line_number: int
    function_name: str


def frame_of(name: str, line: int | None = None) -> PyFrameState:
    """By a slice's name; `line`: the one that runs, where it is known. Else the function's first one."""
    if name.startswith("nn.Module: "):  # the function of torch that calls forward()
        code = torch.nn.Module.__call__.__code__
        return PyFrameState(_MODULE_FILE, line or code.co_firstlineno, code.co_name)
    parts = _FRAME.fullmatch(name)
    return PyFrameState(parts[1], line or int(parts[2]), parts[3]) if parts else PyFrameState("", line or 0, name)


class Owner(NamedTuple):
    """An nn.Module or an Optimizer. `parameters`: _tensors.describe()'s, None without tensors in the recording."""

    cls_name: str
    self_ptr: int  # in recordings without tensors: which module of its class
    cls_ptr: int = 0
    parameters: tuple[Any, ...] = ()


class PyCall(_Fields):
    torch_class = kineto._ExtraFields_PyCall
    optimizer: Owner | None = None

    def __init__(self, name: str, caller: PyFrameState, modules: Mapping[str, Owner]) -> None:
        self.callsite, self.caller = frame_of(name), caller
        self.module: Owner | None = None
        if name.startswith("nn.Module: "):
            cls_name, _, number = name.removeprefix("nn.Module: ").rpartition("_")
            self.module = modules.get(name) or Owner(cls_name, int(number))


class PyCCall(_Fields):
    torch_class = kineto._ExtraFields_PyCCall

    def __init__(self, caller: PyFrameState) -> None:
        self.caller = caller


class Allocation(_Fields):
    torch_class: type = kineto._ExtraFields_Allocation

    id: int | None = None  # as in TensorMetadata
    allocation_id: int | None = None

    def __init__(self, row: dict[str, Any]) -> None:
        self.ptr: int = row["address"]
        self.alloc_size: int = row["bytes"]
        self.total_allocated: int = row["total_allocated_bytes"] or 0
        self.total_reserved: int = row["total_reserved_bytes"] or 0
        self.device = device_of(row["device_type"], row["device"])


class OutOfMemory(Allocation):
    torch_class = kineto._ExtraFields_OutOfMemory
