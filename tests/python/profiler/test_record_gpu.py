"""What `firelane record` asks of the recorder with and without a GPU."""

import recorder_fake
from firelane import _auto


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
    assert recorder.options.cuda
    assert log == ["open", "resume device", "resume", "pause", "stop device"]


def test_without_a_gpu_cuda_is_not_requested(monkeypatch, tmp_path):
    log, recorder = recorded(monkeypatch, tmp_path, has_gpu=False)
    assert not recorder.options.cuda
    assert log == ["open", "resume", "pause"]


def test_with_no_cuda_the_gpu_is_left_alone(monkeypatch, tmp_path):
    log, recorder = recorded(monkeypatch, tmp_path, has_gpu=True, cuda=False)
    assert not recorder.options.cuda
    assert log == ["open", "resume", "pause"]
