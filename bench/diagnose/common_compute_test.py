"""The common kinds of wasted computation run where there is no GPU, and compute the same mended as with their fault."""

import pytest
import torch

import kinds_common_compute as compute
import kinds_common_compute_kept as kept
from gpu_models import Machine
from library import ASKED, COMMON, COMMON_KEPT, LIBRARY, ON_GPU_ONLY, SEALED, UNSEEN, half_of

PROGRAMS = {**compute.PROGRAMS, **kept.PROGRAMS}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ON_GPU_ONLY])
def test_a_program_runs_on_a_cpu_with_its_fault_and_mended(name):
    torch.manual_seed(0)
    for fault in (True, False):
        step = PROGRAMS[name].make(Machine("cpu"), fault)
        step()
        step()


def test_kept_programs_are_of_a_half_of_their_own_and_no_name_is_used_twice():
    assert not set(COMMON) & {*LIBRARY, *UNSEEN, *SEALED, *ASKED}
    assert set(kept.PROGRAMS) <= COMMON_KEPT
    assert not set(compute.PROGRAMS) & COMMON_KEPT
    assert {half_of(name) for name in kept.PROGRAMS} == {"common, kept"}
    assert {half_of(name) for name in compute.PROGRAMS} == {"common"}
    assert all(each.says and each.findings for each in PROGRAMS.values())


def same(make, *given):
    """A module with its fault computes what it computes when mended."""
    faulty, mended = make(True), make(False)
    mended.load_state_dict(faulty.state_dict())
    torch.testing.assert_close(faulty(*given), mended(*given), rtol=1e-4, atol=1e-4)


def test_modules_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    images, nodes, edges = torch.randn(2, 4, 6, 6), torch.randn(10, 4), torch.randint(0, 10, (2, 30))
    same(lambda fault: compute.Critic(6, 8, 3, fault), torch.randn(4, 6), torch.randn(4, 5, 3))
    same(lambda fault: compute.Patches(4, 5, fault), images)
    same(lambda fault: compute.Messages(4, fault), nodes, *edges)
    same(lambda fault: compute.Kernelized(8, 2, fault), torch.randn(2, 6, 8))
    same(lambda fault: compute.Shared(4, fault), torch.randn(3, 2, 4))
    same(lambda fault: compute.Labels(4, 3, fault), images)
    same(lambda fault: kept.Scorer(4, 6, fault), torch.randn(3, 4), torch.randn(3, 5, 4))
    same(lambda fault: kept.Scaled(4, fault), nodes)
    same(lambda fault: kept.Thin(8, 2, fault), torch.randn(3, 8))
    same(lambda fault: kept.Frames(4, 5, fault), torch.randn(16, 4, 6, 6))
    same(lambda fault: kept.Edges(4, fault), nodes, *edges)


def test_functions_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    table, ids, series = torch.randn(7, 4), torch.randint(0, 7, (9,)), torch.randn(2, 40)
    for faulty, mended in (
        (compute.looked_up_by_product(ids, table), table[ids]),
        (compute.distances_by_hand(table, table), compute.distances(table, table)),
        (compute.sums_by_adding(table, ids[:7], 7), compute.sums_by_product(table, ids[:7], 7)),
        (kept.moving_means(series, 8), kept.moving_means_by_sums(series, 8)),
    ):
        torch.testing.assert_close(faulty, mended, rtol=1e-4, atol=1e-4)
    sound, filters = torch.randn(2, 1, 64), torch.randn(3, 1, 9)
    torch.testing.assert_close(
        compute.filtered(sound, filters), compute.filtered_by_fourier(sound, filters), rtol=1e-4, atol=1e-4
    )
    weights, entries = torch.rand(2, 3, 5), torch.randn(2, 5, 4)
    torch.testing.assert_close(kept.pooled_by_hand(weights, entries), weights @ entries)
    batch = torch.randn(64, 4)
    torch.testing.assert_close(kept.whitened_by_svd(batch), kept.whitened_by_eigh(batch), rtol=1e-3, atol=1e-3)
    quantized = [kept.Quantized(6, 4, torch.float32, each_call) for each_call in (True, False)]
    quantized[1].small, quantized[1].scale = quantized[0].small, quantized[0].scale
    quantized[1].large = quantized[0].weight()
    torch.testing.assert_close(*(each(torch.randn(1, 6).fill_(1)) for each in quantized))
