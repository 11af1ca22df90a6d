"""Tests of the recorder's Python side; without the recorder for this torch there is nothing to test."""

try:
    import firelane._record  # noqa: F401 (can it be imported?)
except ImportError as error:
    print(f"tests/python/profiler is skipped: {error}")
    collect_ignore_glob = ["test_*.py"]
