"""Tests of the recorder's Python side; skipped if the recorder is not built for this torch."""

try:
    import firelane._record  # noqa: F401 (can it be imported?)
except ImportError as error:
    print(f"tests/python/profiler is skipped: {error}")
    collect_ignore_glob = ["test_*.py"]
