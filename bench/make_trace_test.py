"""What make_trace guarantees: valid JSON of the requested size, and copies whose links do not collide."""

import gzip
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/bench/make_trace"
SMALL = ROOT / "tests/data/mm1024.json.gz"
COPIES_WANTED_MB = 1


def ids(events: list[dict], key: str) -> Counter:
    """How many events share each id."""
    return Counter(args[key] for event in events if key in (args := event.get("args", {})))


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    if not BINARY.exists():
        pytest.skip(f"{BINARY.relative_to(ROOT)} is not built (make test builds it)")
    path = tmp_path_factory.mktemp("bench") / "large.json"
    subprocess.run([BINARY, SMALL, path, str(COPIES_WANTED_MB)], check=True, capture_output=True)
    assert path.stat().st_size >= COPIES_WANTED_MB * 1_000_000
    with gzip.open(SMALL) as file:
        return json.load(file)["traceEvents"], json.loads(path.read_text())["traceEvents"]


def test_metadata_is_written_once_and_everything_else_repeatedly(traces):
    small, large = traces
    phases = Counter(event["ph"] for event in small)
    copied = Counter(event["ph"] for event in large)
    assert copied["M"] == phases["M"]
    kernels = [sum(event.get("cat") == "kernel" for event in events) for events in traces]
    assert kernels[1] % kernels[0] == 0 and kernels[1] > kernels[0]


@pytest.mark.parametrize("key", ["correlation", "External id", "Ev Idx"])
def test_each_copy_has_its_own_ids_and_keeps_its_links(traces, key):
    small, large = (ids(events, key) for events in traces)
    copies, rest = divmod(len(large), len(small))
    assert rest == 0 and copies > 1
    # As many pairs, triples and so on as in the original, once per copy.
    assert Counter(large.values()) == Counter({size: count * copies for size, count in Counter(small.values()).items()})


def test_copies_follow_each_other_in_time(traces):
    small, large = ([event for event in events if event.get("cat") == "kernel"] for events in traces)
    first, second = large[: len(small)], large[len(small) : 2 * len(small)]
    assert max(event["ts"] + event["dur"] for event in first) < min(event["ts"] for event in second)
    assert [event["dur"] for event in second] == [event["dur"] for event in small]
