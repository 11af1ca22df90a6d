"""The part of `firelane attach PID` that runs inside the program: records some steps, then takes itself out again.

A thread of ours (`_attach_entry.py` starts it) talks to the command over a socket, installs the hooks, and removes them
at the end: when the steps are recorded, when no step comes for too long, when the command asks for it or is gone. The
program's own threads only turn the recorder on and off at the ends of steps, as under `firelane record`; they never
wait for ours. Nothing is printed: the program's output is its own, so what is to be said goes to the command.

What stays: the modules that were imported, because a library that others may be running in cannot be unloaded.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from firelane import _auto
from firelane._auto import Auto, Plan

if TYPE_CHECKING:
    from firelane.profiler._recording import Recording

_entry = threading.Lock()
_visited = 0  # the process, while one is attached: a forked child's copy does not count
_EXIT_S = 60  # how long a program that ends waits for its trace to be completed


class RefusedError(Exception):
    """Why this program cannot be attached to, in one line."""


def serve(connection: socket.socket) -> None:
    """The whole visit, from the command's plan to the answer."""
    lines = connection.makefile("r", encoding="utf-8")
    try:
        with contextlib.suppress(OSError):
            _serve(connection, lines.readline())
    finally:
        lines.close()


def _serve(connection: socket.socket, plan_json: str) -> None:
    if not plan_json:
        return
    global _visited
    with _entry:
        is_first, _visited = _visited != os.getpid(), os.getpid()
    if not is_first:
        _send(connection, "refused", "another attach to it is in progress")
        return
    gone = threading.Event()
    try:
        word, text = _visit(connection, plan_json, gone)
    except RefusedError as error:
        word, text = "refused", str(error)
    except BaseException as error:
        word, text = "refused", f"recording failed: {error!r}"
    _visited = 0  # before it is said: whoever hears it may attach again at once
    _send(connection, word, text)
    gone.set()


def _visit(connection: socket.socket, plan_json: str, gone: threading.Event) -> tuple[str, str]:
    _refuse_what_cannot_be()
    attached = Attached(Plan(**json.loads(plan_json)), lambda text: _send(connection, "note", text), gone)
    try:
        attached.install_hooks()
        _send(connection, "attached")
        why = attached.wait(connection)
    finally:
        attached.take_out()
        attached.close()
    return attached.answer(why)


def _send(connection: socket.socket, word: str, text: str = "") -> None:
    with contextlib.suppress(OSError):
        connection.sendall((" ".join(f"{word} {text}".split()) + "\n").encode())


def _refuse_what_cannot_be() -> None:
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
        raise RefusedError("it has not finished importing torch")
    for each in _auto.running:
        if not each.is_over and not isinstance(each, Attached):  # one of those would be a forked child's copy
            always = type(each).__name__ == "Always"
            remedy = f"firelane trigger {os.getpid()} records its next steps" if always else "wait for its trace"
            raise RefusedError(f"firelane record{' --always' if always else ''} is recording it; {remedy}")
    try:
        from firelane import _record
    except ImportError as error:
        raise RefusedError(str(error)) from error
    if _record.is_recording():
        raise RefusedError("it records itself with firelane.profiler")


class Attached(Auto):
    front = "firelane attach"
    follows_models = False

    def __init__(self, plan: Plan, say: Callable[[str], None], gone: threading.Event) -> None:
        super().__init__(plan)
        self._say_there = say
        self._gone = gone  # it has taken itself out and has said so
        self._process = os.getpid()
        self._turn = threading.Lock()  # who switches the recorder: a step's end, or our thread
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)  # ends wait(); -1: nobody waits any more
        self._wake_use = threading.Lock()  # whoever writes to it must not meet another file under its number
        self._recorded_count = 0
        self._error = ""

    # -- detecting steps ------------------------------------------------------------------

    def _follow_optimizers(self) -> None:
        self._follow_existing_optimizers()

    def stepped(self, source: str, optimizer: int = 0) -> None:
        if self.is_over or os.getpid() != self._process or not self._turn.acquire(blocking=False):
            return  # over, a forked child's, or our thread is ending it
        try:
            super().stepped(source, optimizer)
        finally:
            self._turn.release()

    # -- what is different about a program that was not started by us ---------------------

    def _complete(self) -> None:
        self._end()

    def _end(self) -> None:
        self.is_over = True
        with self._wake_use:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def _prepare(self) -> Recording:
        recording = super()._prepare()
        recording.warns_of_losses = False
        return recording

    def _choose_path(self) -> str:
        return self.plan.output

    def _catch_termination(self) -> None:
        pass  # its signals are its own

    def _say(self, text: str) -> None:
        self._say_there(text)

    def _give_up(self, error: BaseException) -> None:
        self._error = f"recording failed: {error!r}"
        self._end()

    def step_aside(self, recording: Recording) -> None:
        if not recording.is_automatic and not self.is_over:
            self._error = "the program starts firelane.profiler itself, which takes precedence"
            self.take_out()

    # -- our thread -----------------------------------------------------------------------

    def install_hooks(self) -> None:
        import firelane.profiler._recording  # noqa: F401 (what it does at exit is to come after ours)

        atexit.register(self._program_ends)
        super().install_hooks()

    def _program_ends(self) -> None:
        """Our thread would be gone before the trace is complete."""
        self._error = "the program ended"
        self._end()
        self._gone.wait(_EXIT_S)

    def wait(self, connection: socket.socket) -> str:
        """Until the steps are recorded ("") or it has to end early (why)."""
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        seen = 0
        while True:
            ready = dict(poll.poll(self.plan.timeout_s * 1000))
            if self.is_over:
                return self._error
            if connection.fileno() in ready:
                return "interrupted"
            if not ready and seen == self.step_count:
                return self._missing()
            seen = self.step_count

    def close(self) -> None:
        with self._wake_use:
            os.close(self._wake)
            self._wake = -1

    def _missing(self) -> str:
        if self.step_count:
            return f"no step ({self.source}) for {self.plan.timeout_s:g} s"
        return f"no step (of an optimizer, a DataLoader or a profiler) in {self.plan.timeout_s:g} s"

    def take_out(self) -> None:
        """Everything that install_hooks() and the steps since have put in. From any thread, any number of times."""
        from firelane.profiler import _backend

        self._end()
        with self._turn:
            if self not in _auto.running:
                return
            _auto.running.remove(self)
            self.patches.remove()
            self.events.remove()
            _backend.on_start.remove(self.step_aside)
            atexit.unregister(self._program_ends)
            if self.recording is not None and self.recording.is_prepared:
                self._discard_unfinished_step()
                self._recorded_count = [phase for _, phase, _ in self.timer.samples].count("recorded")
                if self._recorded_count:
                    self._stop()
                else:
                    self.recording.stop()
                    with contextlib.suppress(OSError):
                        os.unlink(self.recording.path)
            if hasattr(self, "timer"):
                del self.timer  # has a file open; hooks that others keep may keep this

    def answer(self, why: str) -> tuple[str, str]:
        recording = self.recording
        if recording is None or not self._recorded_count:
            what = recording._why_nothing() if recording is not None and recording.losses else ""
            return "refused", "nothing recorded: " + "; ".join(filter(None, [why, what]))
        for loss in recording.losses:
            self._say(f"the trace is incomplete: {loss.reason}" + (f" ({loss.count} events)" if loss.count else ""))
        if why:
            self._say(f"{why}; recorded until then")
        if not os.path.exists(self.path):
            return "refused", f"{self.path}: could not be written by the program"
        return "done", f"{self._recorded_count} {self.unrecorded_count} {self.path}"
