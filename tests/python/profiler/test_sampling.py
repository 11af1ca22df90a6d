"""Stacks that are sampled beside a recording: rates, what is lost, what counts as recorded time, forks.

The thread itself: src/live/stack_recorder_test.cc.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

import firelane
import recorder_fake
from firelane import _auto, _trace

ROOT = Path(__file__).resolve().parents[3]
FIRELANE = os.environ.get("FIRELANE_BINARY", str(ROOT / "build/release/firelane"))
needs_command = pytest.mark.skipif(not Path(FIRELANE).exists(), reason=f"no {FIRELANE}; make build")
RANGE = "is not a rate between 0.1 and 10000 samples per second"


class FakeSampler:
    def __init__(self, log, losses=()):
        self.log, self.losses = log, list(losses)

    def start(self):
        self.log.append("start samples")

    def stop(self):
        self.log.append("take samples")
        return ['{"stacks":[],"samples":[]}'], self.losses


def put_sampler(monkeypatch, log, losses=()):
    monkeypatch.setattr(_trace, "record_stacks", lambda rate: FakeSampler(log, losses))


@pytest.mark.parametrize("rate", [2e9, float("nan"), float("inf"), -200, 0.05, 10001, True, False])
def test_a_rate_that_is_none_ended_the_program(rate):
    with pytest.raises(ValueError, match="sample_rate: .* " + RANGE):
        firelane.profile(sample_rate=rate)
    if not isinstance(rate, bool):
        with pytest.raises(RuntimeError, match=RANGE):
            _trace.record_stacks(rate)


def test_no_rate_is_no_sampling(monkeypatch):
    monkeypatch.setattr(_trace, "record_stacks", lambda rate: pytest.fail("nobody asked for it"))
    with firelane.profile():
        pass


def test_the_time_to_write_samples_counted_as_recorded(monkeypatch, tmp_path):
    log, _ = recorder_fake.install(monkeypatch)
    put_sampler(monkeypatch, log)
    monkeypatch.setattr(_auto, "_has_gpu", lambda: True)
    auto = _auto.Auto(_auto.Plan(output=str(tmp_path / "run.lane"), sample_rate=200))
    auto._prepare()
    auto.recording.start()
    auto.recording.pause()
    window = ["resume device", "resume", "start samples", "pause", "stop device", "take samples"]
    assert log == ["open", *window]
    auto.recording.stop()
    assert log == ["open", *window, "stop"]
    log.clear()
    auto.recording.start()
    auto.recording.stop()
    assert log == ["open", *window, "stop"]


def test_what_was_lost_of_the_samples_was_in_no_trace(monkeypatch, tmp_path):
    put_sampler(monkeypatch, [], [("stack samples dropped: too many for the trace; sample less often", 7)])
    with pytest.warns(RuntimeWarning, match="too many for the trace"), firelane.profile(sample_rate=200) as prof:
        torch.ones(3) + 1
    prof.save(str(tmp_path / "run.lane"))
    assert [(loss.reason.partition(":")[0], loss.count) for loss in prof.losses] == [("stack samples dropped", 7)]
    if Path(FIRELANE).exists():
        text = subprocess.run([FIRELANE, "info", tmp_path / "run.lane"], capture_output=True, text=True, check=True)
        assert "stack samples dropped: too many for the trace; sample less often" in text.stdout


def test_stacks_that_cannot_be_read_are_a_loss(monkeypatch):
    def refuse(rate):
        raise MemoryError

    monkeypatch.setattr(_trace, "record_stacks", refuse)
    with pytest.warns(RuntimeWarning, match="stacks could not be sampled"), firelane.profile(sample_rate=200):
        pass


@pytest.mark.parametrize("is_refused", [False, True])
def test_stacks_were_prepared_in_the_recorded_window_and_a_failure_counted_twice(monkeypatch, tmp_path, is_refused):
    log, made = recorder_fake.install(monkeypatch)

    def record_stacks(rate):
        log.append("prepare samples")
        if is_refused:
            raise RuntimeError("no stacks here")
        return FakeSampler(log)

    monkeypatch.setattr(_trace, "record_stacks", record_stacks)
    monkeypatch.setattr(_auto, "_has_gpu", lambda: True)
    auto = _auto.Auto(_auto.Plan(output=str(tmp_path / "run.lane"), sample_rate=200))
    auto._prepare()
    for _ in range(2):
        auto.recording.start()
        auto.recording.pause()
    resumed = ["resume device", "resume"]
    if is_refused:
        assert log == ["open", "prepare samples", *(2 * [*resumed, "pause", "stop device"])]
        assert [loss.reason for loss in made[0].losses] == ["stacks could not be sampled: no stacks here"]
    else:
        window = ["prepare samples", *resumed, "start samples", "pause", "stop device", "take samples"]
        assert log == ["open", *window, *window]


def test_a_program_that_forks_while_it_is_sampled_keeps_its_samples(tmp_path):
    program = """
    import os, signal, sys, time
    sys.path.insert(0, sys.argv[1])
    import quick_torch, torch, firelane
    prof = firelane.profile(sample_rate=1000)
    prof.start()
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        torch.ones(4) + 1
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        prof.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    prof.stop()
    prof.save("run.lane")
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "program.py", str(ROOT / "python")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    stacks = [row["stack"] for row in firelane.open(tmp_path / "run.lane").stack_samples]
    assert any("program.py(" in stack for stack in stacks)


@needs_command
@pytest.mark.parametrize(
    "flags, words",
    [
        (["--sample", "--sample-rate", "nan"], "--sample-rate: nan " + RANGE),
        (["--sample", "--sample-rate", "2e9"], "--sample-rate: 2e+09 " + RANGE),
        (["--sample", "--sample-rate", "0"], "--sample-rate: 0 " + RANGE),
        (["--sample", "--sample-rate", "fast"], "--sample-rate: 'fast' is not a number"),
        (["--sample-rate", "500"], "--sample-rate requires --sample"),
        (["--sample", "100"], "--sample: '100': takes no value; set the rate with --sample-rate 100"),
        (["--sample=100"], "--sample: '100': takes no value; set the rate with --sample-rate 100"),
        (["--sample", "often"], "--sample: 'often': takes no value"),
        (["--always", "--sample"], "--sample cannot be combined with --always"),
    ],
)
def test_the_command_refuses_in_one_line_what_it_would_ignore_or_run(flags, words):
    done = subprocess.run([FIRELANE, "record", *flags, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@needs_command
@pytest.mark.parametrize("flag", ["--sample", "--metrics"])
@pytest.mark.parametrize(
    "words",
    [
        ["bin/python", "prog.py", "--", "x"],
        ["../v1.2__venv/bin/python", "prog.py"],
        ["uv", "run", "--", "python", "train.py"],
        ["my__prog.py"],
    ],
)
def test_the_command_behind_a_flag_without_a_value_was_taken_for_one(tmp_path, flag, words):
    done = record_in(tmp_path, flag, words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [Path(words[0]).name, *words[1:]]


def record_in(folder: Path, flag: str, words: list[str]) -> subprocess.CompletedProcess:
    """Where these programs are scripts that print their name and arguments."""
    for path in ("here/bin/python", "v1.2__venv/bin/python", "here/uv", "here/my__prog.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text('#!/bin/sh\necho "${0##*/}" "$@"\n')
        (folder / path).chmod(0o755)
    here = folder / "here"
    environment = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}
    asked = [FIRELANE, "record", flag, *words]
    return subprocess.run(asked, cwd=here, env=environment, capture_output=True, text=True, check=False)


@needs_command
def test_a_process_behind_attachs_flag_is_no_rate():
    asked = [FIRELANE, "attach", "--sample", "1073741823"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert "1073741823: no such process" in done.stderr
    done = subprocess.run([*asked[:-1], "100", "1073741823"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "set the rate with --sample-rate 100" in done.stderr
