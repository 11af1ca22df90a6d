"""Which step is recorded, and what happens from one step to the next."""

import itertools
import warnings

import pytest
import torch

import recorder_fake
from firelane.profiler import ProfilerAction, profile, schedule

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


@pytest.fixture
def fake(monkeypatch):
    return recorder_fake.install(monkeypatch)


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedule_matches_torch_for_every_small_case():
    for wait, warmup, active, repeat, first, first_wait in itertools.product(
        range(3), range(2), range(1, 4), range(3), range(3), range(2)
    ):
        arguments = {
            "wait": wait,
            "warmup": warmup,
            "active": active,
            "repeat": repeat,
            "skip_first": first,
            "skip_first_wait": first_wait,
        }
        ours, theirs = schedule(**arguments), torch.profiler.schedule(**arguments)
        assert [ours(step) for step in range(25)] == [theirs(step) for step in range(25)], arguments


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}])
def test_schedule_rejects_invalid_arguments(wrong):
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def test_schedule_rejects_negative_steps():
    with pytest.raises(AssertionError, match="non-negative"):
        schedule(wait=1, warmup=1, active=1)(-1)


def test_schedule_without_warmup_warns():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)


# What each transition must do: prepare opens the file, start resumes, stop stops, ready calls back.
PREPARE, START, STOP = "open", "resume", "stop"
TRANSITIONS = {
    (NONE, NONE): [],
    (NONE, WARMUP): [PREPARE],
    (NONE, RECORD): [PREPARE, START],
    (NONE, SAVE): [PREPARE, START],
    (NONE, None): [],
    (WARMUP, NONE): ["WARMUP followed by NONE", START, STOP],
    (WARMUP, WARMUP): [],
    (WARMUP, RECORD): [START],
    (WARMUP, SAVE): [START],
    (WARMUP, None): [START, STOP],
    (RECORD, NONE): ["RECORD followed by NONE", STOP],
    (RECORD, WARMUP): ["RECORD followed by WARMUP", STOP],
    (RECORD, RECORD): [],
    (RECORD, SAVE): [],
    (RECORD, None): [STOP, "ready"],
    (SAVE, NONE): [STOP, "ready"],
    (SAVE, WARMUP): [STOP, "ready", PREPARE],
    (SAVE, RECORD): [STOP, "ready", PREPARE, START],
    (SAVE, SAVE): [STOP, "ready", PREPARE, START],
    (SAVE, None): [STOP, "ready"],
}


def name_of(pair):
    return "-".join(action.name if action else "stop" for action in pair)


@pytest.mark.parametrize("pair", TRANSITIONS, ids=name_of)
def test_transition(pair, fake):
    log, _ = fake
    before, now = pair
    prof = profile(
        schedule=lambda step: [before, now or NONE][min(step, 1)], on_trace_ready=lambda p: log.append("ready")
    )
    prof.start()
    del log[:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *rest: log.append(str(message).removeprefix("Incorrect schedule: "))
        prof.stop() if now is None else prof.step()
    assert [e for e in log if not e.startswith(("steps", "ProfilerStep", "end"))] == TRANSITIONS[pair]


def test_an_aborted_cycle_can_be_followed_by_a_complete_one(fake):
    log, _ = fake
    actions = [RECORD, WARMUP, RECORD, SAVE, NONE]
    with (
        pytest.warns(UserWarning, match="RECORD followed by WARMUP"),
        profile(schedule=lambda step: actions[step], on_trace_ready=lambda p: log.append("ready")) as prof,
    ):
        for _ in range(4):
            prof.step()
    assert [e for e in log if e in ("open", "resume", "stop", "ready")] == [
        "open", "resume", "stop", "open", "resume", "stop", "ready",
    ]  # fmt: skip


def test_steps_are_ranges_and_unrecorded_ones_are_timed(fake):
    log, _ = fake
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(4):
            prof.step()
    assert log == [
        "ProfilerStep#0", "end",
        "open", "ProfilerStep#1", "end",
        "resume", "ProfilerStep#2", "end",
        "ProfilerStep#3", "end",
        "steps 0w 1w 2r 3r", "stop", "ProfilerStep#4", "end",
    ]  # fmt: skip


def test_without_a_schedule_everything_is_recorded_and_steps_are_not_ranges(fake):
    log, _ = fake
    with profile() as prof:
        prof.step()
        assert prof.step_num == 1
    assert log == ["open", "resume", "steps 0r", "stop"]


def test_a_schedule_may_not_return_torchs_internal_action(fake):
    class Stopped:
        name = "DEVICE_STOPPED"

    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        profile(schedule=lambda step: Stopped())


def test_a_second_stop_does_nothing(fake):
    log, _ = fake
    prof = profile(on_trace_ready=lambda p: log.append("ready"))
    prof.start()
    prof.stop()
    prof.stop()
    assert log.count("ready") == 1
    prof.start()
    prof.stop()
    assert log.count("ready") == 2
