"""What torch_tests.py makes of reports and of the page with reasons."""

from pathlib import Path

import torch_tests

REPORT = """<testsuites><testsuite>
<testcase classname="test_profiler.TestProfiler" name="test_passes"/>
<testcase classname="test_profiler.TestProfiler" name="test_fails"><failure message="Wrong: 1&#10;2"/></testcase>
<testcase classname="test_profiler.TestProfiler" name="test_needs_cuda"><skipped message="CUDA"/></testcase>
<testcase classname="test_profiler.TestProfiler" name="test_breaks"><error message=""/></testcase>
</testsuite></testsuites>"""
PAGE = """
| test | why |
|---|---|
| `test_source_multithreaded_*` | threads |
| `test_one`, `test_two` | both |
"""


def test_outcomes_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert torch_tests.outcomes(tmp_path / "report.xml") == {
        "TestProfiler.test_passes": ("passed", ""),
        "TestProfiler.test_fails": ("failed", "Wrong: 1"),
        "TestProfiler.test_needs_cuda": ("skipped", ""),
        "TestProfiler.test_breaks": ("failed", ""),
    }


def test_reasons_are_the_rows_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    listed = torch_tests.listed_in(tmp_path / "page.md")
    assert listed == {"test_source_multithreaded_*", "test_one", "test_two"}
    assert torch_tests.is_listed("TestProfiler.test_two", listed)
    assert torch_tests.is_listed("TestProfiler.test_source_multithreaded_basic_True", listed)
    assert not torch_tests.is_listed("TestProfiler.test_three", listed)
    assert torch_tests.listed_in(tmp_path / "none.md") == set()


def test_the_page_has_a_reason_for_each_test_that_it_lists() -> None:
    assert torch_tests.listed_in(torch_tests.REASONS)
