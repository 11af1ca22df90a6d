"""Loads one trace the way Python users do, in a fresh process, and prints time and memory as JSON.

Usage:
    peers.py json FILE     json.load (through gzip.open when the file is compressed)
    peers.py hta FILE      HolisticTraceAnalysis: TraceAnalysis of one rank, with its DataFrame
"""

import gzip
import json
import resource
import sys
import time


def load_json(path: str) -> int:
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        return len(json.load(file)["traceEvents"])


def load_hta(path: str) -> int:
    from hta.trace_analysis import TraceAnalysis  # imported by main() before the clock starts

    return len(TraceAnalysis(trace_files={0: path}, trace_dir="/").t.get_trace(0))


def main() -> None:
    what, path = sys.argv[1:]
    if what == "hta":
        import hta.trace_analysis  # noqa: F401 (so that the import is not timed)
    start = time.perf_counter()
    events = {"json": load_json, "hta": load_hta}[what](path)
    seconds = time.perf_counter() - start
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "bytes": 0, "events": events, "peak_mib": peak_mib}))


if __name__ == "__main__":
    main()
