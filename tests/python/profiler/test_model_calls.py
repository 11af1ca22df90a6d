"""Which calls of modules are steps: firelane/_model_calls.py."""

import threading

import pytest

torch = pytest.importorskip("torch")

from firelane._model_calls import ModelCalls  # noqa: E402


@pytest.fixture
def calls():
    counted = []
    found = ModelCalls(lambda: counted.append(1))
    found.install()
    yield found, counted
    found.remove()


def test_the_first_model_that_is_called_again_counts_from_then_on_and_what_it_calls_does_not(calls):
    _, counted = calls
    inner, other = torch.nn.Linear(2, 2), torch.nn.ReLU()
    model = torch.nn.Sequential(inner, other)
    other(torch.ones(2))  # once is no loop
    for _ in range(4):
        model(torch.ones(2))
    assert len(counted) == 3
    inner(torch.ones(2))
    inner(torch.ones(2))
    assert len(counted) == 3


def test_the_same_model_on_another_thread_is_not_the_one_that_counts(calls):
    _, counted = calls
    model = torch.nn.ReLU()
    for _ in range(2):
        model(torch.ones(2))
    thread = threading.Thread(target=lambda: [model(torch.ones(2)) for _ in range(3)])
    thread.start()
    thread.join()
    assert len(counted) == 1


def test_a_call_that_raises_is_no_step_and_the_next_one_is(calls):
    _, counted = calls
    model = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError):
        model(torch.ones(3))
    for _ in range(3):
        model(torch.ones(2))
    assert len(counted) == 2


def test_torch_has_its_own_call_back_when_it_is_over(calls):
    found, counted = calls
    found.remove()
    assert torch.nn.Module.__call__.__name__ == "_wrapped_call_impl"
    assert not hasattr(torch.nn.Module.__call__, "__wrapped__")
    model = torch.nn.ReLU()
    for _ in range(3):
        model(torch.ones(2))
    assert counted == []
