"""A small HTTP server inside the program: metrics for Prometheus, and a way to ask for a recording.

    GET /metrics                                          Prometheus' text format
    POST /trigger   (Authorization: Bearer TOKEN)         an incident; the body says why

It listens on loopback or on a Unix socket that only the user may open. One thread of Python, asleep until somebody
connects: a request costs the program its answer's fraction of a millisecond, all numbers are Python's anyway, and
nothing else has to be loaded into the process. The training thread never waits for it.

Callers may be slow, silent, wrong or many: a request has a few seconds and a few kilobytes, and the oldest of too many
connections is closed.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import selectors
import socket
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_HEAD = 8192  # bytes
MAX_BODY = 4096
MAX_CONNECTIONS = 16
DEADLINE_S = 5.0
STOP_S = 2.0  # the program's end waits for the server's thread at most
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
}
PLAIN = "text/plain; charset=utf-8"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]  # by lower-case names
    body: bytes = b""


@dataclass
class Answer:
    status: int
    text: str
    content_type: str = PLAIN


class BadRequestError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.answer = Answer(status, text + "\n")


@dataclass
class _Connection:
    socket: socket.socket
    deadline: float
    received: bytearray = field(default_factory=bytearray)
    to_send: memoryview | None = None


class Server:
    """Listens from the constructor on, which raises OSError where it cannot; answers after start()."""

    def __init__(self, where: str, answer: Callable[[Request], Answer], port_offset: int = 0) -> None:
        self.busy_ns = 0  # of its thread, on a core
        self.url = ""
        self._answer = answer
        self._connections: dict[int, _Connection] = {}
        self._is_over = False
        self._path = where if "/" in where else ""
        if self._path:
            self._listener = _listen_on_path(self._path)
            self.url = f"unix:{self._path}"
        else:
            port = int(where)
            self._listener = socket.create_server(("127.0.0.1", port + port_offset if port else 0))
            self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.setblocking(False)
        self._waker, self._wakes = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wakes, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="firelane-metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        self._waker.send(b"x")
        self._thread.join(STOP_S)
        self._close()
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def forget_in_child(self) -> None:
        """In a forked child, which has no such thread: the port is its parent's."""
        self._close()

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()
        self._connections.clear()
        for each in (self._selector, self._listener, self._waker, self._wakes):
            each.close()

    # -- the thread -----------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            self._answer_callers()
        except (OSError, ValueError, KeyError):  # closed under a thread that got no core for long
            if not self._is_over:
                raise

    def _answer_callers(self) -> None:
        while not self._is_over:
            # epoll's descriptor is shared with forked children, whose events would wake us; they close it.
            events = self._selector.select(self._seconds_left())
            begin = time.thread_time_ns()
            for key, _ in events:
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fd in self._connections:
                    self._proceed(self._connections[key.fd])
            self._drop_late()
            self.busy_ns += time.thread_time_ns() - begin

    def _seconds_left(self) -> float | None:
        if not self._connections:
            return None
        return max(0.0, min(c.deadline for c in self._connections.values()) - time.monotonic())

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError as error:  # gone again; or out of descriptors, which come back when others are closed
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.1)
            return
        accepted.setblocking(False)
        while len(self._connections) >= MAX_CONNECTIONS:
            self._drop(next(iter(self._connections.values())))
        self._connections[accepted.fileno()] = _Connection(accepted, time.monotonic() + DEADLINE_S)
        self._selector.register(accepted, selectors.EVENT_READ)

    def _proceed(self, connection: _Connection) -> None:
        try:
            if connection.to_send is None:
                self._receive(connection)
            if connection.to_send is not None:
                sent = connection.socket.send(connection.to_send, socket.MSG_NOSIGNAL)
                connection.to_send = connection.to_send[sent:]
                if not connection.to_send:
                    self._drop(connection)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:  # the other side has gone
            self._drop(connection)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(4096)
        if not data:
            self._drop(connection)
            return
        connection.received += data
        try:
            request = parse(connection.received)
            answer = self._answer(request) if request is not None else None
        except BadRequestError as bad:
            answer = bad.answer
        except Exception as error:  # ours: the program goes on
            answer = Answer(500, f"{error}\n")
        if answer is not None:
            connection.to_send = memoryview(_bytes_of(answer))
            self._selector.modify(connection.socket, selectors.EVENT_WRITE)

    def _drop_late(self) -> None:
        now = time.monotonic()
        for connection in [c for c in self._connections.values() if c.deadline <= now]:
            if connection.to_send is None:
                with contextlib.suppress(OSError):
                    connection.socket.send(_bytes_of(Answer(408, "too slow\n")), socket.MSG_NOSIGNAL)
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._connections.pop(connection.socket.fileno(), None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()


def parse(received: bytes | bytearray) -> Request | None:
    """The request, once it is complete. Raises BadRequestError for what is none, or too large."""
    head, end, body = bytes(received).partition(b"\r\n\r\n")
    if len(head) > MAX_HEAD:
        raise BadRequestError(431, f"a request's head has at most {MAX_HEAD} bytes")
    if not end:
        return None
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError(400, "not an HTTP/1 request")
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequestError(400, "a header without a colon")
        headers[name.strip().lower()] = value.strip()
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or "transfer-encoding" in headers:
        raise BadRequestError(400, "a body needs its Content-Length")
    if len(length) > 9 or int(length) > MAX_BODY:
        raise BadRequestError(413, f"a body has at most {MAX_BODY} bytes")
    if len(body) < int(length):
        return None
    return Request(words[0], words[1].partition("?")[0], headers, body[: int(length)])


def refuse_strangers(request: Request) -> None:
    """Pages of other sites reach loopback through a browser, under their own name."""
    host = request.headers.get("host", "localhost")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in _LOCAL_HOSTS:
        raise BadRequestError(403, "this is for programs on the same machine")


def need_token(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode("latin-1", "replace"), token.encode()):
        raise BadRequestError(401, "needs the header Authorization: Bearer TOKEN")


def _bytes_of(answer: Answer) -> bytes:
    body = answer.text.encode(errors="replace")
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _listen_on_path(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_left_behind(path):
            os.unlink(path)
        listener.bind(path)
        os.chmod(path, 0o600)  # before listen(), until which nobody can connect
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def _is_left_behind(path: str) -> bool:
    """A socket that nobody listens on: its program was killed."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(path)
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False
