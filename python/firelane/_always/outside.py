"""What others see of an always-on recording while it runs, and how they ask it for more: metrics over HTTP or
OpenTelemetry, triggers over HTTP or by a signal. All of it is off unless the user asks for it.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import os
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import server
from .metrics import CONTENT_TYPE, KINDS, Metrics, Values, text
from .metrics import work_in as work_in_batch
from .server import Answer, BadRequestError, Request, Server

if TYPE_CHECKING:
    from .run import Always
    from .telemetry import Telemetry

_SEE_WINDOW_EVERY_S = 60.0
_SEE_WINDOW_SHARE = 0.05  # of the budget, at most
_MAX_REASON = 1000  # characters


class Outside:
    """Used by three threads: the training thread counts work and appends to `observed`, the writer's calls write(), and
    that of the server answers requests."""

    def __init__(self, always: Always) -> None:
        plan = always.plan
        self._always = always
        self.is_on = bool(plan.prometheus or plan.opentelemetry)
        self.observed: collections.deque[tuple[int, int, str, int, int, int, int]] = collections.deque(maxlen=65536)
        self.metrics = Metrics()
        self.incidents = dict.fromkeys(KINDS, 0)
        self._auto = [0, 0]  # samples and tokens that were found in batches
        self._own: list[int | None] = [None, None]  # that the program has counted
        self._server: Server | None = None
        self._telemetry: Telemetry | None = None
        self._token = ""
        self._labels: dict[str, str] = {}
        self._see_window_at = 0.0  # monotonic; before that no window is looked into
        self._files: list[Path] = []
        self._old_handler: Any = None
        self.signals: collections.deque[int] = collections.deque(maxlen=8)

    @property
    def busy_ns(self) -> int:
        """Of the server's thread, on a core."""
        return self._server.busy_ns if self._server is not None else 0

    # -- the training thread --------------------------------------------------------------

    def add_batch(self, loader: Any, batch: Any) -> None:
        samples, tokens = work_in_batch(loader, batch)
        self._auto[0] += samples
        self._auto[1] += tokens

    def count(self, samples: int, tokens: int) -> None:
        """What the program says itself takes the place of what was found in batches."""
        for i, number in enumerate((samples, tokens)):
            if number:
                self._own[i] = (self._own[i] or 0) + number

    def catch_signal(self, number: int) -> None:
        """Asks for a recording when the signal comes; a handler that was there is called as well."""
        if threading.current_thread() is not threading.main_thread():
            _say("signals can only be caught from the main thread; this one is left alone")
            return
        self._old_handler = signal.getsignal(number)

        def handle(signum: int, frame: Any) -> None:
            # The writer's thread sees it: no lock may be taken in here. A forked child has an Outside of its own.
            self._always.outside.signals.append(signum)
            if callable(self._old_handler):
                self._old_handler(signum, frame)

        signal.signal(number, handle)

    # -- begin and end --------------------------------------------------------------------

    def open(self, folder: Path) -> None:
        from firelane.profiler import _ranks

        plan = self._always.plan
        rank = _ranks.rank()
        self._labels = {} if rank is None else {"rank": str(rank)}
        if plan.prometheus:
            self._serve(folder, plan.prometheus, rank)
        if plan.opentelemetry:
            self._begin_telemetry()

    def _serve(self, folder: Path, where: str, rank: int | None) -> None:
        from firelane.profiler import _ranks

        if "/" in where and rank is not None:
            where = f"{where}.rank{rank}"
        given = os.environ.get("FIRELANE_TOKEN", "")
        self._token = given or secrets.token_urlsafe(24)
        self._needs_token_to_read = bool(given)
        try:
            self._server = Server(where, self.answer, int(_ranks.launch().get("local_rank", 0)))
        except (OSError, OverflowError) as error:
            _say(f"no metrics: {where}: {error.args[-1] if error.args else error}; recording continues without it")
            return
        self._server.start()
        with contextlib.suppress(OSError):  # a full disk: they are served all the same
            _write_private(folder / "endpoint", self._server.url + "\n")
            self._files.append(folder / "endpoint")
            if not given:
                _write_private(folder / "token", self._token + "\n")
                self._files.append(folder / "token")
        if not self._always.plan.quiet:
            _say(f"metrics at {self._server.url}{'' if '/' in where else '/metrics'}")

    def _begin_telemetry(self) -> None:
        if _spec_of("opentelemetry.sdk") is None:
            _say("no OpenTelemetry: install opentelemetry-sdk where the program runs; recording continues without it")
            return
        from .telemetry import Telemetry

        try:
            self._telemetry = Telemetry(self.metrics, self.values, self._labels)
        except Exception as error:  # an SDK that is half there, or too old
            _say(f"no OpenTelemetry: {error}; recording continues without it")

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._telemetry is not None:
            self._telemetry.stop()
            self._telemetry = None
        while self._files:
            with contextlib.suppress(OSError):
                self._files.pop().unlink()

    def forget_in_child(self) -> bool:
        """In a forked child: what is open belongs to its parent. Whether something was."""
        if self._server is None:
            return False
        self._server.forget_in_child()
        return True

    # -- the writer's thread --------------------------------------------------------------

    def write(self) -> None:
        while self.observed:
            self.metrics.observe(*self.observed.popleft())

    def see_window(self, path: Path) -> None:
        """Looks into a window now and then: that takes milliseconds, which count as the recorder's."""
        if not self.is_on or time.monotonic() < self._see_window_at:
            return
        began_s = time.thread_time()
        with contextlib.suppress(Exception):  # a window that was cut off: the older values stay
            self.metrics.see_window(path)
        took_s = time.thread_time() - began_s
        pause_s = max(_SEE_WINDOW_EVERY_S, took_s / (_SEE_WINDOW_SHARE * self._always.share))
        self._see_window_at = time.monotonic() + pause_s

    # -- any thread -----------------------------------------------------------------------

    def values(self) -> Values:
        always = self._always
        account = always.account()
        values: Values = {
            "firelane_run_info": [(always.path, 1)],
            **self.metrics.step_values(),
            "firelane_recorder_seconds_total": [
                ("timing", account["timing_ns"] / 1e9),
                ("windows", account["windows_ns"] / 1e9),
            ],
            "firelane_recorder_run_seconds_total": [("", account["elapsed_ns"] / 1e9)],
            "firelane_recorder_spent_ratio": [("", account["spent"])],
            "firelane_recorder_budget_ratio": [("", account["budget"])],
            "firelane_recorder_windows_total": [("", account["windows"])],
            "firelane_recorder_write_errors_total": [("", account["write_errors"])],
            "firelane_recorder_dropped_lines_total": [("", account["dropped_lines"])],
            "firelane_incidents_total": list(self.incidents.items()),
        }
        if always.line_began_ns:
            since_ns = time.perf_counter_ns() - always.line_began_ns
            values["firelane_since_step_seconds"] = [("", max(0, since_ns) / 1e9)]
        for name, known in (
            ("firelane_resident_memory_bytes", always.rss_bytes),
            ("firelane_cuda_allocated_bytes", always.cuda_bytes),
        ):
            if known >= 0:
                values[name] = [("", known)]
        for i, name in enumerate(("firelane_samples_total", "firelane_tokens_total")):
            own = self._own[i]
            if number := (self._auto[i] if own is None else own):
                values[name] = [("", number)]
        return values

    def answer(self, request: Request) -> Answer:
        server.refuse_strangers(request)
        if request.path == "/metrics":
            if request.method != "GET":
                raise BadRequestError(405, "metrics: GET")
            if self._needs_token_to_read:
                server.need_token(request, self._token)
            return Answer(200, text(self.values(), self.metrics.histogram(), self._labels), CONTENT_TYPE)
        if request.path == "/trigger":
            if request.method != "POST":
                raise BadRequestError(405, "trigger: POST")
            server.need_token(request, self._token)
            reason = request.body.decode(errors="replace").strip()[:_MAX_REASON] or "asked for over HTTP"
            self._always.trigger(reason)
            return Answer(202, f"asked; the next steps are recorded into {self._always.path}/kept\n")
        raise BadRequestError(404, "there is GET /metrics and POST /trigger")


def signal_number(name: str) -> int:
    """USR2, SIGUSR2 or 12. Raises ValueError for what no program can catch."""
    try:
        number = int(name) if name.isdigit() else int(signal.Signals["SIG" + name.upper().removeprefix("SIG")])
        signal.Signals(number)
    except (KeyError, ValueError):
        raise ValueError(f"signal: no signal is called {name!r}; USR2, say") from None
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise ValueError(f"signal: no program can catch {name!r}")
    return number


def checked_place(where: str) -> str:
    """A port, or the path of a Unix socket as other folders understand it. Raises ValueError for neither."""
    if "/" in where or where.endswith(".sock"):
        return os.path.abspath(where)
    if where and not (where.isascii() and where.isdigit() and int(where) < 65536):
        raise ValueError(f"prometheus: a port (0: any), or a path with a slash or .sock, not {where!r}")
    return where


def _spec_of(module: str) -> Any:
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:  # its parent package is missing, too
        return None


def _say(line: str) -> None:
    print(f"firelane: {line}", file=sys.stderr)


def _write_private(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
