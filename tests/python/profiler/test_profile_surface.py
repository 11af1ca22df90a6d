"""Arguments, attributes, metadata and callbacks of `profile`, without recording anything."""

import inspect
import json
import re
import threading

import pytest
import torch

import recorder_fake
from firelane import profiler
from firelane.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler


@pytest.fixture
def fake(monkeypatch):
    return recorder_fake.install(monkeypatch)


def test_every_public_name_of_torch_profiler_exists():
    assert {*torch.profiler.__all__, "_KinetoProfile", "_ExperimentalConfig"} <= set(dir(profiler))


def test_names_beside_the_public_ones_could_not_be_imported():
    for name in ("itt", "KinetoStepTracker", "RecordScope", "_supported_activities"):
        assert getattr(profiler, name) is getattr(torch.profiler, name), name
    for name in ("profiler", "no_such_name"):  # torch.profiler.profiler holds torch's own profile
        with pytest.raises(AttributeError, match=f"module 'firelane.profiler' has no attribute '{name}'"):
            getattr(profiler, name)


@pytest.mark.parametrize("name", ["profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler"])
def test_argument_names_and_defaults_match_torch(name):
    theirs = inspect.signature(getattr(torch.profiler, name)).parameters
    ours = inspect.signature(getattr(profiler, name)).parameters
    assert {n: p.default for n, p in theirs.items()} == {n: ours[n].default for n in theirs}


@pytest.mark.parametrize("name", ["profile", "_KinetoProfile"])
def test_every_public_method_takes_torchs_arguments(name):
    theirs, ours = getattr(torch.profiler, name), getattr(profiler, name)
    for method in (m for m in dir(theirs) if not m.startswith("_")):
        wanted = list(inspect.signature(getattr(theirs, method)).parameters)
        assert list(inspect.signature(getattr(ours, method)).parameters)[: len(wanted)] == wanted, method


def test_options_of_the_experimental_config_are_not_taken_for_one_another():
    """torch pickles its fields in another order than that of its arguments, before 2.11."""
    from firelane.profiler._kineto_profile import _asked_for

    config = torch._C._profiler._ExperimentalConfig
    flags = re.findall(r"(\w+): bool", config.__init__.__doc__ or "")
    assert {"enable_cuda_sync_events", "adjust_profiler_step"} <= set(flags)
    for asked in flags:
        assert [flag for flag in flags if _asked_for(config(**{asked: True}), flag)] == [asked]
    assert not _asked_for(config(performance_events=["cycles"]), "enable_cuda_sync_events")
    assert not _asked_for(config(), "an_option_of_another_torch")
    assert not _asked_for(None, "enable_cuda_sync_events")


def test_every_attribute_of_torchs_object_exists(fake):
    theirs = vars(torch.profiler.profile(activities=[ProfilerActivity.CPU]))
    ours = profile(activities=[ProfilerActivity.CPU])
    # Private state of torch's second collector (2.12 on) and of its exporter, which ours has not.
    private = {"_trace_metadata", "_use_cuspy", "_use_cupti_monitor", "_prev_schedule_action"}
    wanted = [name for name in theirs if name not in private and not name.startswith(("_cuspy", "_monitor"))]
    assert [name for name in wanted if not hasattr(ours, name)] == []


def test_types_that_were_asked_for_by_name_are_an_attribute_of_torch_2_12(fake):
    assert profile(activities=[ProfilerActivity.CPU]).activity_filters == {}
    assert profile(activities=[{ProfilerActivity.CPU: ["CPU_OP"]}]).activity_filters == {
        ProfilerActivity.CPU: {"CPU_OP"}
    }


def test_use_cuda_is_deprecated_but_respected(fake):
    with pytest.warns(FutureWarning, match="use_cuda"):
        prof = profile(activities=[ProfilerActivity.CPU], use_cuda=True)
    assert prof.activities == {ProfilerActivity.CPU, ProfilerActivity.CUDA} and prof.use_device == "cuda"
    with pytest.warns(FutureWarning, match="use_cuda"), pytest.raises(AssertionError, match="No valid"):
        profile(activities=[ProfilerActivity.CUDA], use_cuda=False)


def test_flags_reach_the_recorder(fake):
    _, made = fake
    with profile(activities=[ProfilerActivity.CPU], with_flops=True, profile_memory=True, with_stack=True):
        pass
    options = made[0].options
    assert options.shapes and options.flops and options.memory and options.stacks and not options.modules


def test_metadata_of_a_cycle(fake):
    _, made = fake
    prof = profile(record_shapes=True, custom_trace_id_callback=lambda: "A1")
    assert prof.get_trace_id() is None
    prof.preset_metadata_json("job", '{"id": 7}')
    with pytest.warns(UserWarning, match="'late' is dropped"):
        prof.add_metadata("late", "x")
    prof.start()
    prof.add_metadata("text", 'say "hi"\n')
    with pytest.raises(json.JSONDecodeError):
        prof.add_metadata_json("broken", "{")
    prof.stop()
    assert prof.get_trace_id() == "A1"
    expected = {"trace_id": '"A1"', "record_shapes": "1", "job": '{"id": 7}', "text": '"say \\"hi\\"\\n"'}
    assert expected.items() <= made[0].metadata.items() and made[0].metadata.keys().isdisjoint({"late", "broken"})


def test_metadata_between_cycles_is_dropped_silently(fake, recwarn):
    """Lightning adds metadata after every step, including those that its schedule skips."""
    _, made = fake
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=1, repeat=1)) as prof:
        for step in range(5):
            prof.add_metadata(f"step {step}", "x")
            prof.step()
    assert [key for key in made[0].metadata if key.startswith("step")] == ["step 1", "step 2"]
    assert not [w for w in recwarn if "dropped" in str(w.message)]


def test_every_cycle_has_a_new_trace_id(fake):
    prof = profile()
    ids = set()
    for _ in range(3):
        prof.start()
        prof.stop()
        ids.add(prof.get_trace_id())
    assert len(ids) == 3 and all(re.fullmatch("[0-9A-F]{32}", i) for i in ids)


def test_observers_of_execution_traces_see_the_same_window(fake):
    log, _ = fake

    class Observer:
        def start(self):
            log.append("observer start")

        def stop(self):
            log.append("observer stop")

        def cleanup(self):
            log.append("observer cleanup")

    with profile(execution_trace_observer=Observer()):
        pass
    assert log == ["open", "observer start", "resume", "observer stop", "steps ", "stop", "observer cleanup"]


def test_toggle_pauses_and_resumes(fake):
    log, _ = fake
    prof = profile()
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])  # before prepare: does nothing
    prof.start()
    del log[:]
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU, ProfilerActivity.CUDA])
    prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
    with pytest.warns(UserWarning, match="MTIA"):
        prof.toggle_collection_dynamic(True, [ProfilerActivity.MTIA])
    assert log == ["pause", "resume"]
    prof.stop()


@pytest.mark.parametrize("question", ["key_averages", "events"])
def test_results_before_start_and_before_stop_raise_clear_errors(fake, question):
    prof = profile()
    with pytest.raises(AssertionError, match="must be initialized"):
        getattr(prof, question)()
    prof.start()
    with pytest.raises(RuntimeError, match=r"still recording.*call stop"):
        getattr(prof, question)()
    with pytest.raises(RuntimeError, match="still recording"):
        prof.export_chrome_trace("never.json")
    prof.stop()


def test_memory_timeline_names_the_flags_it_needs(fake):
    with profile(profile_memory=True) as prof:
        pass
    with pytest.raises(ValueError, match="record_shapes=True, with_stack=True required"):
        prof.export_memory_timeline("never.html")


def test_tensorboard_files_are_named_by_worker_and_time(fake, tmp_path, monkeypatch):
    names = []
    monkeypatch.setattr(profile, "export_chrome_trace", lambda self, path: names.append(path))
    for options in ({}, {"worker_name": "rank3"}, {"worker_name": "rank3", "use_gzip": True}):
        with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), **options)):
            pass
    assert (tmp_path / "log").is_dir()
    host_pid, plain, gz = (n.removeprefix(f"{tmp_path}/log/") for n in names)
    assert re.fullmatch(r".+_\d+\.\d{19}\.pt\.trace\.json", host_pid)
    assert re.fullmatch(r"rank3\.\d{19}\.pt\.trace\.json", plain)
    assert re.fullmatch(r"rank3\.\d{19}\.pt\.trace\.json\.gz", gz)


def test_tensorboard_handler_reports_a_folder_it_cannot_create(fake, tmp_path):
    (tmp_path / "file").write_text("")
    handler = tensorboard_trace_handler(str(tmp_path / "file" / "log"))
    with pytest.raises(RuntimeError, match="Can't create directory"), profile(on_trace_ready=handler):
        pass


def export_without_waiting(prof):
    prof.export_chrome_trace("t.json", wait=False)


@pytest.mark.parametrize("ready_made", [True, False])
def test_background_exports_run_on_another_thread_and_stop_waits_for_them(fake, monkeypatch, tmp_path, ready_made):
    from firelane.profiler import _recording

    threads = []
    monkeypatch.setattr(
        _recording.Recording, "export_chrome_trace", lambda self, path: threads.append(threading.current_thread())
    )
    handler = tensorboard_trace_handler(str(tmp_path)) if ready_made else export_without_waiting
    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=handler) as prof:
        for _ in range(4):
            prof.step()
    assert len(threads) == 2 and threading.main_thread() not in threads
    prof.export_chrome_trace("again.json")
    assert threads[-1] is threading.main_thread()


def test_a_background_export_is_written_at_exit_where_no_thread_starts_any_more(fake, monkeypatch, tmp_path):
    """As from Python 3.12 on."""
    from firelane.profiler import _recording

    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    written = []
    monkeypatch.setattr(_recording.Recording, "export_chrome_trace", lambda self, path: written.append(path))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path))):
        pass
    assert len(written) == 1


def test_an_export_error_is_raised_once(fake, monkeypatch):
    from firelane.profiler import _recording

    def refuse(self, path):
        raise OSError(f"{path}: no room")

    monkeypatch.setattr(_recording.Recording, "export_chrome_trace", refuse)
    prof = profile(
        schedule=schedule(wait=0, warmup=1, active=1),
        on_trace_ready=lambda p: p.export_chrome_trace("t.json", wait=False),
    )
    prof.start()
    prof.step()
    prof.step()
    with pytest.raises(OSError, match="no room"):
        prof.wait_for_exports()
    prof.wait_for_exports()
    prof.stop()


def test_the_programs_own_error_takes_precedence_over_an_export_error(fake, monkeypatch):
    from firelane.profiler import _recording

    def refuse(self, path):
        raise OSError("no room")

    monkeypatch.setattr(_recording.Recording, "export_chrome_trace", refuse)
    with (
        pytest.warns(RuntimeWarning, match="not written: no room"),
        pytest.raises(KeyError),
        profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=export_without_waiting) as prof,
    ):
        prof.step()
        prof.step()
        raise KeyError


def test_subclasses_may_override_methods(fake):
    log, _ = fake

    class Mine(profile):
        def start_trace(self):
            log.append("mine")
            super().start_trace()

    with Mine():
        pass
    assert log[:3] == ["open", "mine", "resume"]
