"""What may go wrong around a recording without hurting the program."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from firelane.profiler import profile, schedule

PYTHON_FOLDER = Path(__file__).resolve().parents[3] / "python"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRELANE_DIR", str(tmp_path))
    return tmp_path


def run(program, **environment):
    """(exit status, stdout, stderr) of a Python program in its own process."""
    prelude = "import os, quick_torch, sys, torch\nfrom firelane.profiler import profile, schedule\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": f"{PYTHON_FOLDER}:{os.environ['PYTHONPATH']}", **environment},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def ours_in(warnings):
    """Without those of what other tests have left, which may be collected at any time."""
    return [warning for warning in warnings if warning.category is RuntimeWarning]


def has_add(prof):
    return any(row.key == "aten::add" for row in prof.key_averages())


def add():
    return torch.ones(4) + 1


def test_an_exception_in_the_block_propagates_and_the_trace_is_kept():
    with pytest.raises(KeyError), profile() as prof:
        add()
        raise KeyError
    assert has_add(prof)
    with profile() as again:
        add()
    assert has_add(again)


def test_exit_without_stop_keeps_the_exit_status_and_a_readable_file(own_folder):
    code, _, err = run("prof = profile(); prof.start(); torch.ones(4) + 1; sys.exit(7)")
    assert code == 7, err
    files = list(own_folder.glob("*.lane"))
    assert len(files) == 1
    import firelane

    assert any(row["name"] == "aten::add" for row in firelane.open(files[0]).host_slices)


def test_kill_leaves_a_readable_file(own_folder):
    code, _, _ = run(
        """
        import signal, time
        x = torch.ones(4)
        prof = profile(); prof.start()
        x + x  # one op, so that the first event that is written is it
        while prof.profiler._recorder.status().event_count < 1:  # written without a call from here
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert code == -9
    import firelane

    (file,) = own_folder.glob("*.lane")
    assert any(row["name"] == "aten::add" for row in firelane.open(file).host_slices)


def test_a_second_profiler_is_rejected_and_the_first_continues():
    with profile() as first:
        with pytest.raises(RuntimeError, match="record"), profile():
            pass
        add()
    assert has_add(first)


def test_a_forked_child_neither_records_nor_hangs():
    with profile() as prof:
        add()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(4) + 1
                prof.stop()
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        add()
    assert status == 0 and has_add(prof)
    assert next(row.count for row in prof.key_averages() if row.key == "aten::add") == 2


def test_a_missing_folder_is_reported_once_and_the_program_continues(own_folder, monkeypatch):
    monkeypatch.setenv("FIRELANE_DIR", str(own_folder / "no" / "such" / "folder"))
    with pytest.warns(RuntimeWarning, match="incomplete.*no/such/folder") as said, profile() as prof:
        add()
    assert len(ours_in(said)) == 1 and len(prof.losses) >= 1
    assert list(prof.key_averages()) == [] and prof.key_averages().table() == "" and prof.trace is None
    with pytest.warns(RuntimeWarning, match="was not written") as said:
        prof.export_chrome_trace(str(own_folder / "t.json"))
    assert ours_in(said)[0].filename == __file__
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        prof.save(str(own_folder / "t.lane"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_reported(own_folder, monkeypatch):
    (own_folder / "locked").mkdir(mode=0o500)
    monkeypatch.setenv("FIRELANE_DIR", str(own_folder / "locked"))
    with pytest.warns(RuntimeWarning, match="Permission denied"), profile() as prof:
        add()
    assert prof.trace is None


def test_a_full_disk_is_reported(own_folder):
    code, out, err = run(
        """
        import resource, signal, warnings
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writes fail with "File too large"
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        x = torch.ones(4)
        with profile(record_shapes=True) as prof:
            for i in range(200_000):
                x.add_(i)
        print("went on", len(prof.losses) > 0)
        """
    )
    assert code == 0 and "went on True" in out, err
    assert "incomplete" in err


def test_a_thousand_starts_and_stops_leak_nothing(own_folder):
    def memory_kb():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024

    def cycle():
        with profile() as prof:
            add()
        return prof

    for _ in range(50):
        cycle()
    descriptors, memory = len(list(Path("/proc/self/fd").iterdir())), memory_kb()
    for _ in range(1000):
        cycle()
    assert has_add(cycle())
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 1
    assert memory_kb() - memory < 20_000
    assert list(own_folder.iterdir()) == []


def test_data_loader_workers_do_not_disturb_the_recording():
    import programs

    loop = programs.data_loader_with_workers()
    with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(3):
            loop()
            prof.step()
    assert any("_MultiProcessingDataLoaderIter" in row.key for row in prof.key_averages())
