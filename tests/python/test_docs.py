"""The examples in docs/python.md run and print what it says."""

import doctest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_examples_in_the_python_document_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > 20 and result.failed == 0
