"""repeat_tests.py on tests of its own: one that passes, one that fails in its second run, one that is skipped."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

import repeat_tests
from freeze import Freezer, stat_of

SECOND_TIME = 'n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; echo "run $n"; test $n != 1'


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / "CTestTestfile.cmake").write_text(
        'add_test(room.passes "true")\n'
        f"add_test(room.second_time sh -c [[{SECOND_TIME}]])\n"
        f'set_tests_properties(room.second_time PROPERTIES WORKING_DIRECTORY "{tmp_path}")\n'
    )
    return tmp_path


def run(build: Path, *arguments: str) -> int:
    return repeat_tests.main(["--load", "1", "--build", str(build), "--output", str(build / "kept"), *arguments])


def test_a_failure_in_one_of_several_rounds_is_counted_and_its_output_kept(build: Path, capsys):
    assert run(build, "--runs", "3", "--ctest", "^room") == 1
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "  runs  failed  test",
        "     3       1  room.second_time",
        "     3       0  room.passes",
        f"2 tests, 6 runs, 1 failed: {build / 'kept'}",
    ]
    assert [path.name for path in (build / "kept").glob("*.txt")] == ["room.second_time.2.txt"]
    assert "run 1" in (build / "kept" / "room.second_time.2.txt").read_text()


def test_tests_that_always_pass_are_a_success(build: Path):
    assert run(build, "--runs", "2", "--ctest", "passes") == 0


def test_pytest_is_repeated_too_and_skipped_tests_do_not_count(build: Path, capsys):
    (build / "test_x.py").write_text(
        "import pytest\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert 1 == 2\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
    )
    assert run(build, "--runs", "2", "--pytest", str(build / "test_x.py"), f"--rootdir={build}") == 1
    assert capsys.readouterr().out.splitlines()[-4:-1] == [
        "  runs  failed  test",
        "     2       2  test_x::test_fails",
        "     2       0  test_x::test_passes",
    ]
    assert "assert 1 == 2" in (build / "kept" / "test_x::test_fails.1.txt").read_text()


def test_files_run_beside_each_other_as_often_as_one_after_the_other(build: Path, capsys):
    # Each waits for the other: one after the other they would wait in vain.
    for own, other in ("ab", "ba"):
        (build / f"test_{own}.py").write_text(
            "import pathlib, time\n"
            f"def test_meets_{other}():\n"
            f"    begun = pathlib.Path('{build}')\n"
            f"    (begun / '{own}').write_text('')\n"
            f"    assert any((begun / '{other}').exists() or time.sleep(0.01) for _ in range(6000))\n"
            "def test_fails(): assert 1 == 2\n"
        )
    files = [str(build / f"test_{name}.py") for name in "ab"]
    assert run(build, "--runs", "3", "--at-once", "2", "--pytest", *files, f"--rootdir={build}") == 1
    assert capsys.readouterr().out.splitlines()[-6:-1] == [
        "  runs  failed  test",
        "     3       3  test_a::test_fails",
        "     3       3  test_b::test_fails",
        "     3       0  test_a::test_meets_b",
        "     3       0  test_b::test_meets_a",
    ]
    assert not list((build / "kept").glob("*.xml"))


def test_a_pattern_that_names_no_test_is_no_success(build: Path):
    assert run(build, "--runs", "1", "--ctest", "no such test") == 2


def test_a_command_of_its_own_fails_by_its_exit_code(build: Path, capsys):
    (build / "count").write_text("0")
    assert run(build, "--runs", "2", "--freeze", "1", "--command", "sh", "-c", f"cd {build}; {SECOND_TIME}") == 1
    assert "     2       1  sh -c" in capsys.readouterr().out


def test_processes_and_their_children_are_frozen_and_none_stays_so():
    # The child ends when its parent has: nothing is left behind, whatever happens.
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()'])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as process:
        (child,) = wait_for(lambda: children_of(process.pid))
        with Freezer(process.pid, 2, seed=1) as freezer:
            for pid in (process.pid, child):
                wait_for(lambda pid=pid: (stat_of(pid) or "?")[0] == "T")
        assert freezer.freezes >= 2
        wait_for(lambda: all((stat_of(pid) or "?")[0] != "T" for pid in (process.pid, child)))
        with Freezer(process.pid, 1, seed=1, spared="subprocess[.]run") as freezer:
            wait_for(lambda: (stat_of(child) or "?")[0] == "T")
            assert (stat_of(process.pid) or "?")[0] != "T"


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition):
    while not (found := condition()):
        time.sleep(0.001)
    return found
