"""The programs of the shipped test run on a CPU and compute the same mended; without their library they are skipped."""

from typing import Any

import pytest
import torch

import record_all
from gpu_models import Machine
from kinds_shipped import HEALTHY
from kinds_shipped_data import Negatives, sample_negatives
from library import EVERY, SHIPPED, half_of

CPU = Machine("cpu")
# Whose fix changes what is drawn: another order of samples, other negatives.
DRAWS_OTHERS = {"loader-begun-for-every-batch", "negatives-drawn-in-python"}
FAULTS = [name for name in SHIPPED if name not in HEALTHY]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(name: str, fault: bool) -> Any:
    missing = SHIPPED[name].missing()
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    torch.manual_seed(0)
    return SHIPPED[name].make(CPU, fault)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_program_without_a_fault_runs_on_a_cpu(name):
    step = made(name, False)
    step()
    step()


@pytest.mark.parametrize("name", FAULTS)
def test_a_program_computes_the_same_in_its_first_three_steps_when_mended(name):
    results = []
    for fault in (True, False):
        step = made(name, fault)
        results.append([step(), step(), step()])
    faulty, mended = results
    assert all(each is not None for each in (*faulty, *mended))
    if name not in DRAWS_OTHERS:
        torch.testing.assert_close(faulty, mended, rtol=1e-3, atol=1e-4)


def test_drawn_negatives_were_never_bought():
    torch.manual_seed(0)
    bought = {user: {item for item in range(50) if (user + item) % 3 == 0} for user in range(4)}
    pairs = torch.tensor([user * 50 + item for user, items in bought.items() for item in items])
    users = torch.arange(4).repeat(30)
    drawn = Negatives(pairs, 50)
    assert drawn.bought(torch.tensor([0, 1]), torch.tensor([[3, 4], [1, 2]])).tolist() == [[True, False], [False, True]]
    assert not drawn.bought(users, sample_negatives(users, bought, 50, 8)).any()
    assert drawn.bought(users, drawn.sample(users, 8)).float().mean() < 0.05


def test_shipped_programs_are_in_no_other_set_thirty_have_a_fault_and_its_place_is_named():
    assert len(HEALTHY) == 8 and len(FAULTS) == 30
    assert {half_of(name) for name in SHIPPED} == {"shipped"}
    assert sorted(name for name, each in SHIPPED.items() if not each.findings) == sorted(HEALTHY)
    assert all(each.says for each in SHIPPED.values())
    assert all(len(each.where) > 1 if each.findings else not each.where for each in SHIPPED.values())
    assert sum(bool(each.needs) for each in SHIPPED.values() if each.findings) >= 15


def test_a_program_whose_library_is_missing_is_left_out_with_a_line(capsys, monkeypatch):
    names = ["weight-decay-by-autograd", "graph-normalized-in-every-layer"]
    monkeypatch.setattr("gpu_models.find_spec", lambda name: None if name == "torch_geometric" else object())
    assert record_all.with_libraries(names) == ["weight-decay-by-autograd"]
    assert capsys.readouterr().out == "graph-normalized-in-every-layer: skipped, no torch_geometric here\n"
    assert set(names) < set(EVERY)
