"""What a program that hangs is doing: Python stacks of all threads, what the kernel says of each thread (those without
Python, too), native frames, and the collectives that have been called and have not ended.

Threads are not stopped for it and no signal is sent: a handler that unwinds inside of a lock can hang the program for
good. A thread's name, state and system call are in /proc; native frames are walked from a copy of its stack.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

_BACKENDS = ("gloo", "nccl")  # that torch's flight recorder knows


def stacks() -> str:
    """Of all threads, first Python's with their stacks, then the others."""
    from firelane._trace import python_stacks

    ours = {thread.native_id: thread for thread in threading.enumerate()}
    stacks = python_stacks()
    states = _thread_states()
    text = []
    for ident, stack in stacks.items():
        thread = next((t for t in ours.values() if t.ident == ident), None)
        name = thread.name if thread is not None else "unknown"
        state = states.get(thread.native_id or 0, "") if thread is not None else ""
        text.append(f"thread {name} ({ident}{', ' + state if state else ''}), innermost last\n")
        text += _summary(stack).format()
        text.append("\n")
    native = [f"  {tid:>8}  {state}\n" for tid, state in states.items() if tid not in ours]
    if native:
        text += ["threads without Python:\n", *native]
    return "".join(text)


def native_stacks() -> str:
    """Of all threads but this one, read from memory without stopping them; a line why not where that is impossible."""
    from firelane._trace import thread_stacks

    return f"native frames, innermost first:\n\n{thread_stacks()}"


def place_of_thread(ident: int) -> str:
    """Where a thread is, innermost first: train.py:41 in step < train.py:90 in main."""
    from firelane._trace import python_stacks

    stack = python_stacks().get(ident)
    if stack is None:
        return "gone"
    places = [f"{os.path.basename(code.co_filename)}:{line} in {code.co_name}" for code, line in stack]
    return " < ".join(places[:6])


def _summary(stack: list[tuple[types.CodeType, int]]) -> traceback.StackSummary:
    entries = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(stack)]
    return traceback.StackSummary.from_list(entries)


def _thread_states() -> dict[int, str]:
    """By thread: its name, and whether it runs or where it waits. What /proc does not give is left out."""
    from firelane._trace import thread_state

    found = {}
    with contextlib.suppress(OSError):
        for tid in sorted(map(int, os.listdir("/proc/self/task"))):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{tid}/comm", errors="replace") as name:
                found[tid] = f"{name.read().strip()}, {thread_state(tid)}"
    return found


# -- collectives -----------------------------------------------------------------------------


def turn_on_flight_recorder() -> None:
    """torch 2.8 and 2.9 keep no collectives unless they are asked to before the first process group; newer ones do.

    NCCL's own variable has further effects, and stays as it is."""
    if "TORCH_NCCL_TRACE_BUFFER_SIZE" not in os.environ:
        os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")


def pending_collectives() -> tuple[str, str]:
    """What has been called and has not ended, as text; and the flight recorder's dump as JSON, for firelane hangs.
    Both empty in a program without process groups."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return "", ""
    groups = _groups(dist)
    dump = _dump()
    if dump is None:
        return "pending collectives are unknown: this torch has no flight recorder\n", ""
    entries = dump.get("entries") or []
    text = _text_of(entries, groups)
    unknown = sorted({backend for _, backend, _ in groups.values() if backend and backend not in _BACKENDS})
    if unknown:
        text += f"collectives of {', '.join(unknown)} are not known: torch's flight recorder has gloo's and NCCL's\n"
    for name, (description, _, ranks) in groups.items():  # gloo leaves its members out
        config = dump.setdefault("pg_config", {}).setdefault(name, {"name": name, "desc": description})
        config["ranks"] = str(ranks)
    dump["rank"] = dist.get_rank()
    return text, json.dumps(dump, default=str, sort_keys=True)  # as torch writes it: readers look at the first key


def _text_of(entries: list[dict[str, Any]], groups: dict[str, tuple[str, str, list[int]]]) -> str:
    if not entries:
        return (
            "pending collectives are unknown: torch's flight recorder is empty (no collective has been called yet, "
            "or it is off; start the program with TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_TRACE_BUFFER_SIZE=2000)\n"
        )
    pending = [entry for entry in entries if not entry.get("retired") and entry.get("state") != "completed"]
    if not pending:
        last = entries[-1]
        return f"no collective is pending; the last one was {_line_of(last, groups)}\n"
    lines = [f"pending collectives: {len(pending)}"]
    lines += [f"  {_line_of(entry, groups)}" for entry in pending[:20]]
    if len(pending) > 20:
        lines.append(f"  and {len(pending) - 20} more")
    return "\n".join(lines) + "\n"


def _line_of(entry: dict[str, Any], groups: dict[str, tuple[str, str, list[int]]]) -> str:
    name, description = (*entry.get("process_group", ("", "")), "", "")[:2]
    known, _, ranks = groups.get(name, ("", "", []))
    members = f" (ranks {_ranges(ranks)})" if ranks else ""
    number = entry.get("p2p_seq_id") if entry.get("is_p2p") else entry.get("collective_seq_id")
    sizes = ", ".join(map(str, entry.get("input_sizes") or []))
    types = ", ".join(sorted(set(entry.get("input_dtypes") or [])))
    age_s = (time.time_ns() - int(entry.get("time_created_ns") or 0)) / 1e9
    group = known or (description if description != "undefined" else "") or f"group {name}"
    state = f", {entry['state']}" if entry.get("state") == "started" else ""
    return (
        f"{entry.get('profiling_name', 'unknown')} #{number} of {group}{members}{state}, {types} {sizes}, "
        f"called {age_s:.1f} s ago{_place_of(entry.get('frames') or [])}"
    )


def _place_of(frames: list[dict[str, Any]]) -> str:
    """The innermost frame outside of torch."""
    for frame in frames:
        filename = str(frame.get("filename", ""))
        if f"{os.sep}torch{os.sep}" not in filename:
            return f" at {os.path.basename(filename)}:{frame.get('line')} in {frame.get('name')}"
    return ""


def _ranges(ranks: list[int]) -> str:
    """0-3, 8."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _groups(dist: Any) -> dict[str, tuple[str, str, list[int]]]:
    """By name: description, backend and the ranks of each process group, as far as torch says."""
    found: dict[str, tuple[str, str, list[int]]] = {}
    with contextlib.suppress(Exception):  # torch's own tables, which may change
        world = dist.distributed_c10d._world
        for group, name in world.pg_names.items():
            backend = str(world.pg_map.get(group, ("",))[0])
            description = str(getattr(group, "group_desc", "") or "")
            ranks = [int(rank) for rank in world.pg_group_ranks.get(group, {})]
            found[str(name)] = ("" if description == "undefined" else description, backend, sorted(ranks))
    return found


def _dump() -> dict[str, Any] | None:
    """Of NCCL's and of the other backends' recorder (torch 2.8), in one. None if torch has neither."""
    try:
        from torch._C import _distributed_c10d as c10d
    except ImportError:
        return None
    whole: dict[str, Any] | None = None
    for name in ("_dump_nccl_trace", "_dump_fr_trace"):
        dump: Callable[[], bytes] | None = getattr(c10d, name, None)
        if dump is None:
            continue
        with contextlib.suppress(Exception):  # a recorder that is off
            part = pickle.loads(dump())  # made by torch in this process
            if whole is None:
                whole = part
            else:
                whole["entries"] = [*(whole.get("entries") or []), *(part.get("entries") or [])]
                whole.setdefault("pg_status", {}).update(part.get("pg_status") or {})
    return whole
