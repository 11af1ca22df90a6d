"""Which tensor is which: the ids of tensors and storages in the event tree, by torch.profiler's rules.

A recording with record_shapes, profile_memory and with_stack holds the addresses of each input and of its storage. An
address is another block after each free, and a tensor may change its storage: `assign_ids` numbers the blocks
(`allocation_id`) and gives all blocks of a tensor one `id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from ._tree_fields import Allocation, Owner, TensorMetadata


def describe(owner: Any) -> Owner:
    """The tensors of a module (name, parameter, gradient) or of an optimizer (parameter, gradient, its state) now."""
    with torch._C.DisableTorchFunctionSubclass():  # the code of a subclass is not ours to run
        parameters = _of_module(owner) if isinstance(owner, torch.nn.Module) else _of_optimizer(owner)
    return Owner(type(owner).__name__, id(owner), id(type(owner)), parameters)


def _of_module(module: torch.nn.Module) -> tuple[Any, ...]:
    own = vars(module).get("_parameters", {}).items()
    return tuple((name, _described(p), _gradient(p)) for name, p in own if p is not None)


def _of_optimizer(optimizer: Any) -> tuple[Any, ...]:
    return tuple(
        (_described(p), _gradient(p), _state(optimizer.state.get(p, {})))
        for group in optimizer.param_groups
        for p in group["params"]
    )


def tensors_of(owner: Owner) -> Iterator[TensorMetadata]:
    for of_parameter in owner.parameters:
        for value in of_parameter:
            if type(value) is TensorMetadata:
                yield value
            elif isinstance(value, list):
                yield from (tensor for _, tensor in value)


def _state(state: dict[Any, Any]) -> list[tuple[str, TensorMetadata]]:
    described = ((str(key), _described(value)) for key, value in state.items() if isinstance(value, torch.Tensor))
    return [(key, tensor) for key, tensor in described if tensor is not None]


def _gradient(parameter: torch.Tensor) -> TensorMetadata | None:
    return _described(parameter.grad) if parameter.is_leaf else None


def _described(tensor: torch.Tensor | None) -> TensorMetadata | None:
    try:
        if tensor is None:
            return None
        return TensorMetadata(
            tensor.dtype,
            list(tensor.shape),
            list(tensor.stride()) if tensor.layout == torch.strided else [],
            tensor.device,
            impl_ptr=tensor._cdata,
            storage_data_ptr=tensor.untyped_storage().data_ptr(),
            layout=tensor.layout,
        )
    except (RuntimeError, NotImplementedError, ValueError):  # no storage of its own: lazy, sparse, fake, a subclass
        return None


def assign_ids(seen: Iterable[TensorMetadata | Allocation]) -> None:
    """Sets `id` and `allocation_id` of everything that was seen, in order of time.

    Blocks that no tensor was ever seen in keep `id` None.
    """
    things = list(seen)
    _number_blocks(things)
    tensors = [thing for thing in things if type(thing) is TensorMetadata]
    ids = _join_blocks([tensor for tensor in tensors if tensor.storage_data_ptr is not None])
    for thing in things:
        thing.id = ids.get(thing.allocation_id)
    by_tensor = {tensor.impl_ptr: tensor.id for tensor in tensors if tensor.storage_data_ptr is not None}
    for tensor in tensors:  # before it had memory
        if tensor.storage_data_ptr is None:
            tensor.id = by_tensor.get(tensor.impl_ptr)


def _number_blocks(things: Sequence[TensorMetadata | Allocation]) -> None:
    live: dict[Any, int] = {}
    last = 0
    for thing in things:
        place = (thing.device, thing.ptr if isinstance(thing, Allocation) else thing.storage_data_ptr)
        if place not in live:
            last += 1
            live[place] = last
        thing.allocation_id = live[place]
        if isinstance(thing, Allocation) and thing.alloc_size < 0:
            del live[place]


def _join_blocks(tensors: Sequence[TensorMetadata]) -> dict[int | None, int]:
    """An id for each block: the same for the first block of a tensor and each that it has later."""
    first_of: dict[int | None, Any] = {}
    pairs = set()
    for tensor in tensors:
        block: Any = tensor.allocation_id
        first = first_of.setdefault(tensor.impl_ptr, block)
        pairs.add((min(first, block), max(first, block)))
    ids: dict[int | None, int] = {}
    last = 0
    for one, other in sorted(pairs):
        if one not in ids:
            ids[one] = last
            last += 1
        ids.setdefault(other, ids[one])
    return ids
