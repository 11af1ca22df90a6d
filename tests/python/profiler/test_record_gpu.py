"""What `firelane record` and `firelane.profile` ask of the recorder with and without a GPU."""

import pytest
from torch.profiler import ProfilerAction, ProfilerActivity

import firelane
import recorder_fake
from firelane import _auto
from firelane.profiler import profile, schedule


def recorded(monkeypatch, tmp_path, has_gpu, **options):
    log, made = recorder_fake.install(monkeypatch)
    monkeypatch.setattr(_auto, "_has_gpu", lambda: has_gpu)
    auto = _auto.Auto(_auto.Plan(output=str(tmp_path / "run.lane"), options=options))
    auto._prepare()
    auto.recording.start()
    auto.recording.pause()
    return log, made[0]


def test_the_gpu_is_recorded_and_released_before_the_last_steps_are_timed(monkeypatch, tmp_path):
    log, recorder = recorded(monkeypatch, tmp_path, has_gpu=True)
    assert recorder.options.cuda and recorder.options.start_light
    assert log == ["open", "resume device", "resume", "pause", "stop device"]


def test_with_a_gpu_some_steps_are_timed_some_light_and_some_full(monkeypatch, tmp_path):
    log, _ = recorder_fake.install(monkeypatch)
    monkeypatch.setattr(_auto, "_has_gpu", lambda: True)
    auto = _auto.Auto(_auto.Plan(output=str(tmp_path / "run.lane"), steps=2, after=2, quiet=True))
    auto.timer = recorder_fake.FakeTimer()
    for _ in range(12):
        auto.stepped("optimizer", 1)
    assert "steps 1w 2u 3w 4l 5l 6l 7r 8r 9u 10u" in log
    assert log.index("resume") < log.index("full") < log.index("stop device")


def test_how_many_light_steps_can_be_chosen(monkeypatch):
    monkeypatch.setattr(_auto, "_has_gpu", lambda: True)
    assert [_auto.Auto(_auto.Plan(light=light)).light for light in (-1, 0, 7)] == [3, 0, 7]
    assert _auto.Auto(_auto.Plan(steps=0)).light == 0  # the whole program
    monkeypatch.setattr(_auto, "_has_gpu", lambda: False)
    assert [_auto.Auto(_auto.Plan(light=light)).light for light in (-1, 2)] == [0, 2]


def test_without_a_gpu_cuda_is_not_requested(monkeypatch, tmp_path):
    log, recorder = recorded(monkeypatch, tmp_path, has_gpu=False)
    assert not recorder.options.cuda and not recorder.options.start_light
    assert log == ["open", "resume", "pause"]


def test_with_no_cuda_the_gpu_is_left_alone(monkeypatch, tmp_path):
    log, recorder = recorded(monkeypatch, tmp_path, has_gpu=True, cuda=False)
    assert not recorder.options.cuda
    assert log == ["open", "resume", "pause"]


def phases_of(monkeypatch, make):
    log, _ = recorder_fake.install(monkeypatch)
    prof = make(schedule=schedule(wait=2, warmup=1, active=4, repeat=1))
    prof.start()
    for _ in range(8):
        prof.step()
    prof.stop()
    return next(line for line in log if line.startswith("steps ")), "full" in log


def test_a_window_of_firelane_profile_begins_with_light_steps_that_its_user_can_choose(monkeypatch):
    steps, became_full = phases_of(monkeypatch, lambda **args: firelane.profile(light=2, **args))
    assert steps.startswith("steps 0w 1u 2w 3l 4l 5r 6r") and became_full
    steps, became_full = phases_of(monkeypatch, lambda **args: firelane.profile(light=9, **args))
    assert steps.startswith("steps 0w 1u 2w 3l 4l 5l 6r") and became_full
    steps, _ = phases_of(monkeypatch, firelane.profile)  # no GPU
    assert steps.startswith("steps 0w 1u 2w 3r 4r 5r 6r")


def test_with_torchs_own_arguments_every_active_step_is_full(monkeypatch):
    cuda = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    steps, became_full = phases_of(monkeypatch, lambda **args: profile(activities=cuda, **args))
    assert steps.startswith("steps 0w 1u 2w 3r 4r 5r 6r") and not became_full


def test_with_a_gpu_half_of_a_window_of_firelane_profile_is_light(monkeypatch):
    monkeypatch.setattr(firelane._profile, "supported_activities", lambda: {ProfilerActivity.CUDA})
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    steps, became_full = phases_of(monkeypatch, firelane.profile)
    assert steps.startswith("steps 0w 1u 2w 3l 4l 5r 6r") and became_full


def lights_of(monkeypatch, actions):
    """Steps with their phases in each trace of a schedule that is given step by step: W, R, S, or . for none."""
    log, made = recorder_fake.install(monkeypatch)
    by_letter = {".": "NONE", "W": "WARMUP", "R": "RECORD", "S": "RECORD_AND_SAVE"}

    def at(step):
        return ProfilerAction[by_letter[actions[step] if step < len(actions) else "."]]

    at.active = 3
    prof = firelane.profile(light=1, schedule=at)
    prof.start()
    for _ in actions:
        prof.step()
    prof.stop()
    assert all(recorder.options.start_light for recorder in made)
    return [line for line in log if line.startswith("steps ") or line == "full"]


def test_every_window_that_a_schedule_repeats_begins_with_light_steps(monkeypatch):
    assert lights_of(monkeypatch, "WRRSWRRS") == ["full", "steps 0w 1l 2r 3r", "full", "steps 4w 5l 6r 7r"]


@pytest.mark.filterwarnings("ignore:Incorrect schedule")
def test_a_window_after_one_that_was_broken_off_stayed_light_for_ever(monkeypatch):
    assert lights_of(monkeypatch, "WRRWRRS") == ["full", "steps 0w 1l 2r", "full", "steps 3w 4l 5r 6r"]
