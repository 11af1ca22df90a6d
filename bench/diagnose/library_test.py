"""The programs of the library run where there is no GPU, with their fault and mended; half of them are held out."""

import pytest
import torch

from gpu_models import Machine
from kinds_asked import HEALTHY as HEALTHY_ASKED
from kinds_asked_loops import Binned, Neighbours, Slow, area_of_all, hits_of_best, hits_of_sorted
from kinds_asked_models import Language
from kinds_asked_signals import Long, Past, all_windows, window_by_window
from kinds_asked_text import Adapted, penalized, penalized_one_by_one
from kinds_asked_vision import Blur, Video
from kinds_blind import Bags, suppressed_in_python, suppressed_together
from kinds_blind_loops import Messages
from kinds_merged import HEALTHY as HEALTHY_MERGED
from kinds_merged_loops import Columns, Jacobian, drawn_by_numpy, drawn_by_torch
from kinds_merged_signals import (
    LEVELS,
    padding_by_comparing,
    padding_by_rows,
    phases,
    places_by_search,
    quantiles_at_once,
    quantiles_in_turn,
    resampled_by_phase,
    resampled_together,
)
from kinds_merged_space import (
    Process,
    best_of_flat,
    best_of_padded,
    chamfer_once,
    chamfer_twice,
    voxels_by_number,
    voxels_by_rows,
)
from kinds_merged_text import (
    Grammar,
    Packed,
    Turning,
    angles,
    banned_by_windows,
    banned_through_lists,
    loss_by_shifting_labels,
    loss_by_shifting_scores,
)
from kinds_merged_vision import (
    Swish,
    boxes_one_by_one,
    boxes_together,
    confusion_by_comparing,
    confusion_by_counting,
    dice_of_masks,
    dice_of_numbers,
    patches_by_slices,
    patches_by_unfold,
    warped_by_gathers,
    warped_by_grid,
)
from kinds_other import Experts
from kinds_sealed import HEALTHY as HEALTHY_SEALED
from kinds_sealed_loops import runge_kutta, runge_kutta_as_written
from kinds_sealed_text import chosen_of_all, chosen_of_best, smoothed, smoothed_by_hand
from kinds_sealed_vision import hardest_one_by_one, hardest_together
from kinds_settings import PROGRAMS as SETTINGS
from kinds_unseen import HEALTHY
from kinds_unseen_loops import area_in_python, area_on_device
from kinds_unseen_text import private
from kinds_unseen_vision import Codes, pairs_by_device, pairs_by_host
from library import (
    ASKED,
    BLIND,
    BLIND_KEPT,
    BLIND_OPEN,
    EVERY,
    FRESH,
    GAINS,
    HELD_OUT,
    LATE,
    LIBRARY,
    MERGED,
    NEXT,
    ON_GPU_ONLY,
    SEALED,
    TUNING,
    UNSEEN,
    half_of,
)


@pytest.fixture(autouse=True)
def _one_thread():
    """On a busy machine, threads that wait for each other take minutes for what one does in seconds."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    "name",
    [
        *LIBRARY,
        *UNSEEN,
        *(name for name in (*BLIND, *LATE, *FRESH, *NEXT, *SEALED, *ASKED, *MERGED, *GAINS) if name not in ON_GPU_ONLY),
    ],
)
def test_a_program_runs_on_a_cpu_with_its_fault_and_mended(name):
    torch.manual_seed(0)
    for fault in (True, False):
        step = EVERY[name].make(Machine("cpu"), fault)
        step()
        step()


def test_a_program_whose_losses_pile_up_computes_the_same_average_when_mended():
    torch.manual_seed(0)
    faulty = SETTINGS["average-over-all-losses"].make(Machine("cpu"), True)
    torch.manual_seed(0)
    mended = SETTINGS["average-over-all-losses"].make(Machine("cpu"), False)
    assert torch.equal(faulty(), mended())


def test_every_second_name_is_held_out():
    names = sorted(LIBRARY)
    assert [half_of(name) for name in names[:4]] == ["tuning", "held out", "tuning", "held out"]
    assert sorted([*TUNING, *HELD_OUT]) == names
    assert {half_of(name) for name in GAINS} == {"gains"}


def test_unseen_programs_are_in_no_half_that_rules_are_tuned_on_and_all_but_four_have_a_fault():
    assert not set(UNSEEN) & {*TUNING, *HELD_OUT}
    assert {half_of(name) for name in UNSEEN} == {"unseen"}
    assert sorted(name for name, each in UNSEEN.items() if not each.findings) == sorted(HEALTHY)
    assert all(each.says for each in UNSEEN.values())


def test_half_of_the_blind_programs_is_kept_from_tuning():
    assert sorted([*BLIND_OPEN, *BLIND_KEPT]) == sorted(BLIND)
    assert not set(BLIND) & {*TUNING, *HELD_OUT, *UNSEEN, *GAINS}
    assert {half_of(name) for name in BLIND_KEPT} == {"blind, kept"}


def test_the_newest_blind_programs_are_in_no_other_set():
    assert not set(FRESH) & {*LIBRARY, *UNSEEN, *BLIND, *LATE, *GAINS}
    assert {half_of(name) for name in FRESH} == {"fresh"}
    assert sorted(name for name, each in FRESH.items() if not each.findings) == ["healthy-tabular"]
    assert all(each.says for each in FRESH.values())


def test_programs_of_the_next_blind_test_are_in_no_other_set_and_one_has_no_fault():
    assert not set(NEXT) & {*LIBRARY, *UNSEEN, *BLIND, *LATE, *FRESH, *GAINS}
    assert {half_of(name) for name in NEXT} == {"next"}
    assert sorted(name for name, each in NEXT.items() if not each.findings) == ["healthy-ranker"]
    assert all(each.says for each in NEXT.values())


def test_sealed_programs_are_in_no_other_set_and_all_but_four_have_a_fault():
    assert not set(SEALED) & {*LIBRARY, *UNSEEN, *BLIND, *LATE, *FRESH, *NEXT, *GAINS}
    assert {half_of(name) for name in SEALED} == {"sealed"}
    assert sorted(name for name, each in SEALED.items() if not each.findings) == sorted(HEALTHY_SEALED)
    assert all(each.says for each in SEALED.values())


def test_asked_programs_are_in_no_other_set_and_all_but_six_have_a_fault():
    assert not set(ASKED) & {*LIBRARY, *UNSEEN, *BLIND, *LATE, *FRESH, *NEXT, *SEALED, *GAINS}
    assert {half_of(name) for name in ASKED} == {"asked"}
    assert sorted(name for name, each in ASKED.items() if not each.findings) == sorted(HEALTHY_ASKED)
    assert all(each.says for each in ASKED.values())


def test_merged_programs_are_in_no_other_set_all_but_six_have_a_fault_and_its_place_is_named():
    assert not set(MERGED) & {*LIBRARY, *UNSEEN, *BLIND, *LATE, *FRESH, *NEXT, *SEALED, *ASKED, *GAINS}
    assert {half_of(name) for name in MERGED} == {"merged"}
    assert sorted(name for name, each in MERGED.items() if not each.findings) == sorted(HEALTHY_MERGED)
    assert all(each.says for each in MERGED.values())
    assert all(bool(each.where) == bool(each.findings) for each in MERGED.values())


def twins(make):
    """The same module as it is with the fault and mended."""
    faulty, mended = make(True), make(False)
    mended.load_state_dict(faulty.state_dict())
    return faulty, mended


def test_asked_modules_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    images, clips = torch.rand(2, 3, 24, 24), torch.randn(2, 4, 3, 8, 8)
    for make, given in (
        (lambda fault: Blur(9, 1.5, square=fault), images),
        (lambda fault: Video(8, by_frame=fault), clips),
        (lambda fault: Long(4, 64, 127 if fault else 128), torch.randn(2, 64, 4)),
    ):
        faulty, mended = twins(make)
        torch.testing.assert_close(faulty(given), mended(given), rtol=1e-4, atol=1e-5)
    faulty, mended = twins(lambda fault: Adapted(6, 8, 2, merges=fault))
    faulty.up.data.normal_()
    mended.up.data.copy_(faulty.up)
    x = torch.randn(5, 6)
    torch.testing.assert_close(faulty(x), mended(x))
    edges, nodes = torch.randint(0, 10, (2, 40)), torch.randn(10, 4)
    weights = torch.rand(40)
    pairs = torch.zeros(10, 10).index_put_((edges[1], edges[0]), weights, accumulate=True)
    faulty, mended = twins(lambda fault: Neighbours(4, 4, pairs if fault else None))
    torch.testing.assert_close(faulty(nodes, edges, weights), mended(nodes, edges, weights))


def test_asked_loops_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    scores, written = torch.randn(3, 20), torch.randint(0, 20, (3, 12))
    assert torch.equal(penalized_one_by_one(scores, written, 1.2), penalized(scores, written, 1.2))
    wanted = torch.randint(0, 20, (3,))
    assert all(map(torch.equal, hits_of_sorted(scores, wanted, 5), hits_of_best(scores, wanted, 5)))
    model, series = Past(4, 3), torch.randn(2, 30)
    torch.testing.assert_close(window_by_window(model, series), all_windows(model, series))
    sure, truth = torch.rand(5000), (torch.rand(5000) < 0.3).float()
    assert Binned(Machine("cpu"))(sure, truth).item() == pytest.approx(area_of_all(sure, truth).item(), abs=1e-2)
    network = torch.nn.Linear(3, 3)
    copied, in_place = Slow(network, copies=True), Slow(network, copies=False)
    network.weight.data.add_(1)
    for each in (copied, in_place):
        each.follow(0.1)
    torch.testing.assert_close(copied.target.weight, in_place.target.weight)
    language, text = Language(20, 12, 8, 2, 2), torch.randint(0, 20, (3, 4))
    common = torch.randint(0, 20, (1, 8))
    whole = language.hidden(torch.cat((common.expand(3, -1), text), dim=1))[:, 8:]
    kept = language.body.keep(language.embed(common))
    torch.testing.assert_close(language.body.after(language.embed(text, 8), kept), whole)


def test_merged_vision_computes_the_same_mended_as_with_its_fault():
    torch.manual_seed(0)
    masks = torch.rand(5, 9, 7) < 0.3
    torch.testing.assert_close(boxes_one_by_one(masks), boxes_together(masks))
    shares, labels = torch.randn(2, 5, 6, 6).softmax(1), torch.randint(0, 5, (2, 6, 6))
    torch.testing.assert_close(dice_of_numbers(shares, labels, 5), dice_of_masks(shares, labels, 5))
    found, truth = torch.randint(0, 6, (2, 50))
    assert torch.equal(confusion_by_comparing(found, truth, 6), confusion_by_counting(found, truth, 6))
    x, flow = torch.randn(2, 3, 9, 8, requires_grad=True), 3 * torch.randn(2, 2, 9, 8)
    warped = [warp(x, flow) for warp in (warped_by_gathers, warped_by_grid)]
    torch.testing.assert_close(*warped, rtol=1e-3, atol=1e-4)
    changes = [torch.autograd.grad(each.square().sum(), x)[0] for each in warped]
    torch.testing.assert_close(*changes, rtol=1e-3, atol=1e-3)
    assert torch.equal(patches_by_slices(x, 4, 2), patches_by_unfold(x, 4, 2))
    y = torch.randn(20, dtype=torch.double, requires_grad=True)
    torch.testing.assert_close(Swish()(y), torch.nn.functional.silu(y))
    assert torch.autograd.gradcheck(Swish(), y)


def test_merged_text_computes_the_same_mended_as_with_its_fault():
    torch.manual_seed(0)
    scores, text = torch.randn(4, 9), torch.randint(0, 3, (4, 30))
    banned = banned_by_windows(scores, text, 3)
    assert banned.isinf().any() and torch.equal(banned_through_lists(scores.clone(), text, 3), banned)
    grammar, states = Grammar(Machine("cpu"), 50, 4), [0, 2, 3]
    scores = torch.rand(3, 50)
    assert torch.equal(grammar.through_lists(scores, states), grammar.by_table(scores, torch.tensor(states)))
    scores, text = torch.randn(2, 7, 9), torch.randint(0, 9, (2, 7))
    torch.testing.assert_close(loss_by_shifting_scores(scores, text), loss_by_shifting_labels(scores, text))
    layer, places, x = Turning(8, 2), torch.arange(5).expand(2, -1), torch.randn(2, 5, 8)
    torch.testing.assert_close(layer(x, places, None), layer(x, places, angles(places, 4)))
    pieces = []
    for slices in (True, False):
        torch.manual_seed(0)
        stream = iter(Packed(50, 100, 8, slices))
        pieces.append(torch.stack([next(stream) for _ in range(30)]))
    assert torch.equal(*pieces)


def test_merged_signals_are_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    waves, filters = torch.randn(2, 1, 147 * 6), phases(Machine("cpu"), 147, 80)
    torch.testing.assert_close(resampled_by_phase(waves, filters, 147), resampled_together(waves, filters, 147))
    old, new = (torch.arange(2 * rate) * 440 / rate / 100 * 6.283185307 for rate in (14_700, 8_000))
    tone = resampled_together(old.sin()[None, None], filters, 147)[0]
    torch.testing.assert_close(tone[300:-300], new.sin()[300:-300], rtol=0, atol=1e-2)
    lengths = torch.tensor([3, 1, 5])
    assert torch.equal(padding_by_rows(lengths, 5), padding_by_comparing(lengths, 5))
    drawn = torch.randn(9, 3, 4)
    torch.testing.assert_close(quantiles_in_turn(drawn), quantiles_at_once(drawn, torch.tensor(LEVELS)))
    schedule, places = torch.linspace(1, 0, 10), torch.randint(0, 10, (6,))
    assert places_by_search(schedule, schedule[places]) == places.tolist()


def test_merged_points_graphs_and_processes_are_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    sizes = torch.tensor([7, 2, 3, 1])
    graphs, kept, scores = torch.arange(4).repeat_interleave(sizes), (sizes + 1) // 2, torch.randn(13)
    assert torch.equal(best_of_padded(scores, graphs, sizes, kept), best_of_flat(scores, graphs, sizes, kept))
    observed = torch.randn(20, 3), torch.randn(20)
    keeps, factors_again = (Process(*observed, keeps=each) for each in (True, False))
    for asked in torch.randn(2, 5, 3):
        for one, other in zip(keeps(asked), factors_again(asked), strict=True):
            torch.testing.assert_close(one, other)
    a, b = torch.randn(2, 2, 9, 3)
    torch.testing.assert_close(chamfer_twice(a, b), chamfer_once(a, b))
    cells = torch.randint(-3, 4, (60, 4))
    assert all(map(torch.equal, voxels_by_rows(cells), voxels_by_number(cells)))


def test_merged_loops_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    jacobian = Jacobian(torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)))
    x = torch.randn(4, 3)
    torch.testing.assert_close(jacobian.row_by_row(x), jacobian.together(x))
    apart, together = Columns(3, 5, 2, apart=True), Columns(3, 5, 2, apart=False)
    together.table.weight.data = torch.cat([each.weight.data for each in apart.tables])
    ids = torch.randint(0, 5, (4, 3))
    assert torch.equal(apart(ids), together(ids))
    for drawn in (drawn_by_numpy, drawn_by_torch):
        counts = drawn(torch.tensor([0.0, 1, 0, 3]), 1000).bincount(minlength=4)
        assert counts[[0, 2]].tolist() == [0, 0] and 650 < counts[3] < 850


def test_sealed_programs_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    places, labels = torch.randn(12, 4), torch.arange(12) // 3
    distances = torch.cdist(places, places)
    torch.testing.assert_close(hardest_one_by_one(distances, labels), hardest_together(distances, labels))
    scores, wanted = torch.randn(6, 9), torch.arange(6)
    torch.testing.assert_close(smoothed_by_hand(scores, wanted), smoothed(scores, wanted))
    y = torch.randn(3)
    torch.testing.assert_close(runge_kutta_as_written(torch.sin, y, 0.5), runge_kutta(torch.sin, y, 0.5))
    certain = torch.zeros(2, 80).scatter(1, torch.tensor([[7], [60]]), 90.0)
    assert chosen_of_all(certain).tolist() == chosen_of_best(certain).tolist() == [[7], [60]]


def test_blind_programs_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    low = torch.rand(40, 2) * 16
    boxes, scores = torch.cat((low, low + 2 + torch.rand(40, 2) * 6), dim=1), torch.rand(40)
    assert suppressed_in_python(boxes, scores).tolist() == suppressed_together(boxes, scores).tolist()
    padded, packed = Bags(20, 8, padded=True), Bags(20, 8, padded=False)
    packed.load_state_dict(padded.state_dict())
    batch = {
        "padded": torch.tensor([[3, 4, 0], [7, 0, 0]]),
        "mask": torch.tensor([[1.0, 1, 0], [1, 0, 0]]),
        "ids": torch.tensor([3, 4, 7]),
        "offsets": torch.tensor([0, 2]),
    }
    torch.testing.assert_close(padded(batch), packed(batch))
    edges = torch.randint(0, 10, (2, 50))
    sorts, sorted_once = Messages(4, sorts=True), Messages(4, sorts=False)
    sorted_once.load_state_dict(sorts.state_dict())
    x, counts = torch.randn(10, 4), torch.bincount(edges[1], minlength=10).clamp(min=1).float()
    torch.testing.assert_close(sorts(x, edges, counts), sorted_once(x, edges, counts))


def test_unseen_programs_compute_the_same_mended_as_with_their_fault():
    torch.manual_seed(0)
    scores, labels = torch.randn(50), torch.arange(50.0) % 3 // 2
    assert area_in_python(scores.tolist(), labels.tolist()) == pytest.approx(area_on_device(scores, labels).item())
    classes = torch.arange(12) % 5
    torch.testing.assert_close(pairs_by_host(classes), pairs_by_device(classes))
    slow, fast = Codes(16, 8, by_broadcast=True), Codes(16, 8, by_broadcast=False)
    fast.load_state_dict(slow.state_dict())
    images = torch.randn(2, 8, 3, 3)
    torch.testing.assert_close(slow(images), fast(images))


def test_gradients_of_samples_are_the_same_one_by_one_and_together():
    sums = []
    for fault in (True, False):
        torch.manual_seed(0)
        sums.append(private(Machine("cpu"), fault)())
    torch.testing.assert_close(*sums, rtol=1e-3, atol=1e-4)


def test_experts_in_one_batch_compute_what_the_loop_computes():
    torch.manual_seed(0)
    loop, batched = Experts(8, 4, loop=True), Experts(8, 4, loop=False)
    batched.load_state_dict(loop.state_dict())
    tokens = torch.randn(16, 8)
    slots = 2 * len(tokens) // 4
    busiest = loop.router(tokens).argmax(-1).bincount().max()
    assert busiest <= slots, "no token may be left out here"
    torch.testing.assert_close(loop(tokens), batched(tokens))
