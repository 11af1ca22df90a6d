"""What a trace says about its surroundings beside events: other processes, what torch.compile did.

All of it is metadata of the trace, read when a recording is prepared and stopped: nothing here runs while the program's
steps do. Modules that the program has not imported are not imported here either; a value that cannot be had is left
out, whatever the reason.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from . import _ranks

_LONGEST_REASON = 200
_KEPT_COMPILATIONS = 64  # by torch._dynamo.utils, the newest ones


class CpuUse:
    """Cores that this program and all others kept busy, from its making on."""

    def __init__(self) -> None:
        self._began = self._read()

    def metadata(self) -> dict[str, str]:
        began, now = self._began, self._read()
        if began is None or now is None or now[0] - began[0] < 0.05:
            return {}
        wall, busy, own = (after - before for after, before in zip(now, began, strict=True))
        return {
            "cores_used": json.dumps(round(own / wall, 2)),
            "cores_used_by_others": json.dumps(round(max(0.0, busy - own) / wall, 2)),
        }

    @staticmethod
    def _read() -> tuple[float, float, float] | None:
        """Seconds: of the clock, of all cores in use, of this program's own processes."""
        try:
            with open("/proc/stat") as file:
                user, nice, system, _idle, _wait, irq, softirq = (int(word) for word in file.readline().split()[1:8])
            ticks = os.sysconf("SC_CLK_TCK")
            return time.monotonic(), (user + nice + system + irq + softirq) / ticks, _own_ticks() / ticks
        except (OSError, ValueError):
            return None


def _own_ticks() -> int:
    """Of all processes of this session: workers, other ranks, and the processes that they have waited for."""
    session, total = os.getsid(0), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                words = file.read().rpartition(")")[2].split()  # from the third field on: names may hold anything
        except OSError:
            continue  # it has ended meanwhile
        if int(words[3]) == session:
            total += sum(int(word) for word in words[11:15])
    return total


def environment() -> dict[str, str]:
    """What launchers say: how many ranks share this machine."""
    ranks = _ranks.launch().get("local_world_size")
    return {} if ranks is None else {"local_world_size": str(ranks)}


class CompileCounts:
    """What torch.compile did in the whole program, and since the making of this."""

    def __init__(self) -> None:
        self._began = time.time()

    def metadata(self) -> dict[str, str]:
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None:
            return {}
        try:
            return self._metadata(utils)
        except Exception:
            return {}  # another version of torch keeps it elsewhere

    def _metadata(self, utils: Any) -> dict[str, str]:
        counters = utils.counters
        if not counters["frames"].get("total", 0):
            return {}
        breaks: dict[str, int] = counters["graph_break"]
        compilations = list(utils.get_compilation_metrics())
        again = [each for each in compilations if getattr(each, "recompile_reason", None)]
        op_counts = [getattr(each, "graph_op_count", None) for each in compilations]
        with_ops = sum(1 for count in op_counts if count)
        frames = counters["frames"].get("ok", 0)  # torch before 2.9 counts functions that were given up among them
        if 0 < len(compilations) < _KEPT_COMPILATIONS:
            frames = min(frames, sum(1 for count in op_counts if count is not None))
        failed = [each for each in compilations if getattr(each, "fail_reason", None)]  # their code runs as it is
        seconds = [getattr(each, "entire_frame_compile_time_s", None) or 0.0 for each in compilations]
        recent = [
            spent
            for each, spent in zip(compilations, seconds, strict=True)
            if (getattr(each, "start_time", None) or 0.0) >= self._began
        ]
        found = {
            "compile_frames": frames,
            "compile_graphs": max(counters["stats"].get("unique_graphs", 0), with_ops),
            "compile_seconds": round(sum(seconds), 3),
            "compile_recent": len(recent),
            "compile_recent_seconds": round(sum(recent), 3),
            "compile_graph_breaks": sum(breaks.values()),
            "compile_recompiles": len(again),
            "compile_cudagraph_skips": counters["inductor"].get("cudagraph_skips", 0),
            "compile_failed": len(failed),
        }
        if failed:
            found["compile_failed_at"] = _place(failed[0])
            found["compile_fail_reason"] = _first_line(str(failed[0].fail_reason))
        if breaks:
            found["compile_break_reason"] = _first_line(max(breaks, key=lambda reason: breaks[reason]))
        if again:
            last = again[-1]
            if last.co_filename:  # some have only the reason
                found["compile_recompiled"] = _place(last)
            found["compile_recompile_reason"] = _first_line(str(last.recompile_reason))
        return {name: json.dumps(value) for name, value in found.items()}


def _place(compilation: Any) -> str:
    name = str(getattr(compilation, "co_name", None) or "")
    file = getattr(compilation, "co_filename", None)
    return f"{os.path.basename(str(file))}:{compilation.co_firstlineno} {name}" if file else name


def _first_line(text: str) -> str:
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _LONGEST_REASON else line[:_LONGEST_REASON] + "..."
