"""Which tensor is which: ids of inputs and allocations in the event tree, and torch's memory profile on top of them."""

import pytest
import torch
from torch._C import _profiler as kineto
from torch.profiler import _memory_profiler

import firelane.profiler

CPU = [torch.profiler.ProfilerActivity.CPU]
ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}
PROFILES = pytest.mark.parametrize(
    "profile", [torch.profiler.profile, firelane.profiler.profile], ids=["torch", "ours"]
)


def test_a_block_of_an_earlier_recording_was_not_seen_to_be_freed(no_collections):
    def freed_later(profile):
        with profile(activities=CPU, profile_memory=True) as first:
            kept = [torch.empty(3, 4), torch.empty(5, 6)]
        kept.pop()  # between the recordings, where nobody sees it
        with profile(activities=CPU, profile_memory=True) as second:
            kept.clear()
        allocated, _ = memory_of(first)
        (freed,) = memory_of(second)
        assert (freed.ptr, freed.alloc_size) == (allocated.ptr, -allocated.alloc_size)
        return freed.alloc_size, freed.device, freed.total_reserved, allocated.total_allocated - freed.total_allocated

    def memory_of(prof):
        return [node.extra_fields for node in nodes_of(prof) if node.name == "[memory]"]

    ours = freed_later(firelane.profiler.profile)
    assert ours == (-48, torch.device("cpu"), 0, 48)
    assert freed_later(torch.profiler.profile)[:3] == ours[:3]  # torch's total still holds what was freed in between


def walk(nodes):
    for node in nodes:
        yield node
        yield from walk(node.children)


def nodes_of(prof):
    return list(walk(prof.profiler.kineto_results.experimental_event_tree()))


def tensors_of(value):
    if isinstance(value, list):
        return [tensor for item in value for tensor in tensors_of(item)]
    return [value] if isinstance(value, kineto._TensorMetadata) else []


def flow_of(prof):
    """Ops with their tensors, and allocations: each tensor by the order in which it was first seen."""
    numbers = {None: None}
    flow = []
    for node in nodes_of(prof):
        if node.tag == kineto._EventType.TorchOp and tensors_of(node.extra_fields.inputs):
            found = tensors_of(node.extra_fields.inputs)
            ids = [numbers.setdefault(tensor.id, len(numbers)) for tensor in found]
            flow.append((node.name, ids, [(list(t.sizes), t.dtype, t.device, t.layout) for t in found]))
        elif node.tag == kineto._EventType.Allocation:
            fields = node.extra_fields
            flow.append((fields.alloc_size, numbers.setdefault(fields.id, len(numbers)), fields.device))
    return flow


def follows_tensors():
    x = torch.ones(4, 4)
    for _ in range(3):
        view = x.view(16)
        view.add_(1)
        del view
        y = torch.cat([x, x.t()])
        del y
    x.set_(torch.zeros(2, 2))
    torch._foreach_mul_([x, torch.ones(3)], 2.0)
    return x


def test_tensors_are_followed_from_op_to_op(both):
    theirs, ours = both(follows_tensors, **ALL)
    assert flow_of(ours) == flow_of(theirs)
    assert any(step[0] == "aten::_foreach_mul_" for step in flow_of(ours))


def test_tensors_are_followed_where_nothing_is_allocated(both):
    x, y = torch.ones(4), torch.ones(4)
    theirs, ours = both(lambda: x.mul_(y).add_(x), record_shapes=True, profile_memory=True)
    assert flow_of(ours) == flow_of(theirs)
    assert flow_of(ours)[-1][1] == [1, 1]


def test_inputs_that_are_no_tensors(both):
    def run():
        x = torch.ones(2, 3)
        x.add(x, alpha=2.5).sum([0], keepdim=True).mul(1)
        torch.nn.functional.conv1d(torch.ones(1, 2, 8), torch.ones(2, 2, 3), None, padding=1)

    def plain(prof):
        ops = [node for node in nodes_of(prof) if node.tag == kineto._EventType.TorchOp]
        return [
            (node.name, [None if tensors_of(value) else (type(value), value) for value in node.extra_fields.inputs])
            for node in ops
        ]

    theirs, ours = both(run, **ALL)
    assert plain(ours) == plain(theirs)


def test_addresses_are_those_of_the_programs_tensors():
    x, y = torch.ones(3), torch.ones(3)
    with firelane.profiler.profile(activities=CPU, **ALL) as prof:
        x.mul(y)
    op = next(node for node in nodes_of(prof) if node.name == "aten::mul")
    assert [t.impl_ptr for t in op.extra_fields.inputs] == [x._cdata, y._cdata]
    assert [t.storage_data_ptr for t in op.extra_fields.inputs] == [t.untyped_storage().data_ptr() for t in (x, y)]
    sql = "select json_extract(tensors, '$[1][1]') storage from op_details where tensors is not null"
    assert y.untyped_storage().data_ptr() in {row["storage"] for row in prof.trace.sql(sql)}


def test_addresses_are_only_recorded_for_who_asks():
    for missing in ("record_shapes", "profile_memory"):
        with firelane.profiler.profile(activities=CPU, **{**ALL, missing: False}) as prof:
            torch.ones(3).mul(2)
        assert not list(prof.trace.sql("select id from op_details where tensors is not null"))


def test_memory_is_freed_while_recording():
    with firelane.profiler.profile(activities=CPU, **ALL) as prof:
        x = torch.ones(1 << 16)
        x.add_(1)
        del x
    sizes = [n.extra_fields.alloc_size for n in nodes_of(prof) if n.tag == kineto._EventType.Allocation]
    assert 4 << 16 in sizes
    assert -4 << 16 in sizes


def train(model, optimizer, data):
    for _ in range(2):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()


def categories_of(prof, tensors):
    """By the storages of tensors that are alive, and the bytes of each category over time."""
    found = prof._memory_profile()
    snapshot = found._category_snapshot()
    last = sorted(snapshot.items(), key=lambda item: item[0][0].storage.allocation_id)  # memory is used again
    by_storage = {key.storage.ptr: category for (key, _), category in last if category is not None}
    totals = {}
    for _, action, (key, version), size in found.timeline:
        category = found._categories.get(key, version) if isinstance(key, _memory_profiler.TensorKey) else None
        name = (action.name, category.name if category else None)
        totals[name] = totals.get(name, 0) + size
    return [by_storage.get(tensor.untyped_storage().data_ptr()) for tensor in tensors], totals


@PROFILES
def test_memory_profile_knows_parameters_gradients_and_states(profile):
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.ones(8, 16)
    with profile(activities=CPU, **ALL) as prof:
        train(model, optimizer, data)
    parameters = list(model.parameters())
    states = [optimizer.state[p]["exp_avg"] for p in parameters]
    found, totals = categories_of(prof, [*parameters, *(p.grad for p in parameters), *states, data])
    category = _memory_profiler.Category
    n = len(parameters)
    assert found == [category.PARAMETER] * n + [category.GRADIENT] * n + [category.OPTIMIZER_STATE] * n + [
        category.INPUT
    ]
    assert totals["CREATE", "ACTIVATION"] > 0


def test_memory_profile_has_torchs_categories(both):
    states = []

    def run():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        train(model, optimizer, torch.ones(8, 16))
        states.append((model, optimizer))  # until both have recorded

    theirs, ours = both(run, **ALL)
    assert categories_of(ours, [])[1] == categories_of(theirs, [])[1]
    timelines = [_memory_profiler.MemoryProfileTimeline(p._memory_profile()) for p in (theirs, ours)]
    (_, theirs_by_category), (_, ours_by_category) = (t._coalesce_timeline("cpu") for t in timelines)
    assert ours_by_category[-1] == theirs_by_category[-1]


@PROFILES
def test_optimizers_and_modules_name_their_tensors(profile):
    model = torch.nn.Linear(2, 3)
    optimizers = [torch.optim.SGD([p], 0.1, momentum=0.9) for p in model.parameters()]
    with profile(activities=CPU, **ALL) as prof:
        model(torch.ones(4, 2)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    calls = [node.extra_fields for node in nodes_of(prof) if node.tag == kineto._EventType.PyCall]
    module = next(fields.module for fields in calls if fields.module is not None)
    assert (module.self_ptr, module.cls_name) == (id(model), "Linear")
    assert [(name, p.impl_ptr, grad) for name, p, grad in module.parameters] == [
        (name, p._cdata, None) for name, p in model.named_parameters()
    ]
    steps = [fields.optimizer for fields in calls if fields.optimizer is not None]
    assert [step.self_ptr for step in steps] == [id(optimizer) for optimizer in optimizers]
    for step, p, optimizer in zip(steps, model.parameters(), optimizers, strict=True):
        ((parameter, grad, state),) = step.parameters
        assert (parameter.impl_ptr, grad.impl_ptr) == (p._cdata, p.grad._cdata)
        assert {name: t.impl_ptr for name, t in state} == {
            "momentum_buffer": optimizer.state[p]["momentum_buffer"]._cdata
        }
