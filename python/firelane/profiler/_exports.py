"""Writes traces in the background while training continues: one thread per process, jobs in order.

A job's error is kept and raised once, by the next wait(). The thread ends with its last job, so that nothing is left
running; at exit the interpreter waits for it, as for any non-daemon thread.
"""

from __future__ import annotations

import os
import queue
import threading
import warnings
from collections.abc import Callable

_lock = threading.Lock()
_jobs: queue.SimpleQueue[tuple[Exports, Callable[[], object]]] = queue.SimpleQueue()
_pending = 0


def _work() -> None:
    global _pending
    while True:
        owner, job = _jobs.get()
        owner._run(job)
        del job
        with _lock:
            _pending -= 1
            if _pending == 0:
                return


class Exports:
    """The exports of one profiler."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self._errors: list[BaseException] = []

    def submit(self, job: Callable[[], object]) -> None:
        global _pending
        with self._changed:
            self._open += 1
        with _lock:
            _pending += 1
            _jobs.put((self, job))
            is_first = _pending == 1
        if is_first:
            try:
                threading.Thread(target=_work, name="firelane exports").start()
            except RuntimeError:  # at exit, from Python 3.12 on
                _work()

    def wait(self, *, warn_only: bool = False) -> None:
        """Returns when all exports are written; raises the first error of those that failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._open == 0)
            errors, self._errors = self._errors, []
        if errors and warn_only:
            warnings.warn(f"firelane: a trace was not written: {errors[0]}", RuntimeWarning, stacklevel=3)
        elif errors:
            raise errors[0]

    def _run(self, job: Callable[[], object]) -> None:
        error: BaseException | None = None
        try:
            job()
        except BaseException as raised:  # raised by wait(), on the caller's thread
            error = raised
        with self._changed:
            self._open -= 1
            if error is not None:
                self._errors.append(error)
            self._changed.notify_all()


def _reset_in_child() -> None:
    """A forked child inherits the queue but not the thread."""
    global _jobs, _lock, _pending
    _jobs, _lock, _pending = queue.SimpleQueue(), threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
