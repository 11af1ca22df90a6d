"""TensorBoard's Firelane tab: the viewer over the traces below --logdir or --logdir_spec. docs/tensorboard.md.

    tensorboard --logdir ./log

TensorBoard finds `Plugin` through the package's entry point. The page is the one that `firelane view` serves, built
into the module; its requests (docs/viewer-protocol.md) are answered here, without a server or token of our own:
whoever can open TensorBoard can see the traces in its log folder. Requests refer to traces by number, never by path.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from tensorboard.plugins.base_plugin import FrontendMetadata, TBContext, TBPlugin
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from firelane import _trace

from .logdir import Logdir, folders_of
from .trace_cache import TraceCache

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_LISTING_TIMEOUT_SECONDS = 2.0  # TensorBoard's first screen waits for it
_PAGE_TIMEOUT_SECONDS = 20.0
_DEFAULT_RELOAD_SECONDS = 5.0  # TensorBoard's default
_MIN_RELOAD_SECONDS = 2.0
_MAX_BODY_BYTES = 64 << 10
_COMPRESS_FROM_BYTES = 4 << 10

# As strict as TensorBoard's plugin check allows. Framing is allowed because notebooks show TensorBoard in a frame.
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self' data:; base-uri 'none'; form-action 'none'"
)
# TensorBoard imports it in the tab's frame; the page takes that frame over.
_MODULE = b'export function render() { location.replace(new URL("index.html", import.meta.url)); }\n'
_NO_PAGE = (
    b"<!doctype html><title>Firelane</title><p>This firelane was built without its viewer. In the source tree: "
    b"<code>make viewer</code>, then reinstall it.</p>"
)


class Plugin(TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    plugin_name = "firelane"

    def __init__(self, context: TBContext) -> None:
        super().__init__(context)
        self._logdir = Logdir(folders_of(context.logdir, getattr(context.flags, "logdir_spec", None)))
        self._reload_s = _reload_seconds(getattr(context.flags, "reload_interval", None))
        self._open_traces = TraceCache()

    def is_active(self) -> bool:
        return bool(self._logdir.look(_LISTING_TIMEOUT_SECONDS))

    def frontend_metadata(self) -> FrontendMetadata:
        return FrontendMetadata(es_module_path="/index.js", tab_name="Firelane")

    def get_plugin_apps(self) -> dict[str, WSGIApplication]:
        return {
            "/index.js": _module,
            "/index.html": _page,
            "/assets/*": _asset,
            "/api/*": Request.application(self._api),
        }

    def _api(self, request: Request) -> Response:
        if request.method not in ("GET", "POST"):
            return _error(request, 405, "only GET is supported, and POST for SQL")
        # Another site's page cannot send this content type: the browser's preflight request for it would fail.
        if request.method == "POST" and request.mimetype != "application/json":
            return _error(request, 400, "the body must be application/json")
        request.max_content_length = _MAX_BODY_BYTES
        what = request.path.split("/firelane/api/", 1)[1]
        try:
            if what == "traces" and request.method == "GET":
                return self._traces(request)
            if what.startswith("t/"):
                return self._about_trace(request, what)
        except RequestEntityTooLarge:
            return _error(request, 413, "the body is larger than 64 KiB")
        except Exception as error:  # TensorBoard would answer with a page that does not name it
            return _error(request, 500, f"{type(error).__name__}: {error}")
        return _error(request, 404, "no such request; docs/viewer-protocol.md lists them")

    def _traces(self, request: Request) -> Response:
        """`trace=ID` is the one the page is about to show; the first one if there is no such trace."""
        found = self._logdir.look(_PAGE_TIMEOUT_SECONDS)
        wanted = request.args.get("trace")
        if found and wanted is not None:
            self._open_traces.open(self._logdir.trace(_number(wanted)) or found[0], fresh=True)
        entries = [self._open_traces.entry(file) for file in found]
        listed = {"version": _trace.version, "reload_s": self._reload_s, "traces": entries}
        return _respond(request, 200, "application/json", json.dumps(listed).encode())

    def _about_trace(self, request: Request, what: str) -> Response:
        _, name, *rest = what.split("/")
        id, dot, steps = name.partition(".")  # 3.light: the light steps of trace 3
        file = self._logdir.trace(_number(id))
        if file is None:  # a page from before a restart
            self._logdir.look(_PAGE_TIMEOUT_SECONDS)
            file = self._logdir.trace(_number(id))
        viewer = self._open_traces.open(file) if file else None
        if viewer is None:
            return _error(request, 404, "no such trace; reload the page to see the current ones")
        viewer.wait()  # it may have been evicted since the page saw it ready
        target = f"/api/t/0{dot}{quote(steps)}/{quote('/'.join(rest))}"
        if request.query_string:
            target += "?" + request.query_string.decode("latin-1")
        status, content_type, body = viewer.answer(request.method, target, request.get_data())
        return _respond(request, status, content_type, body)


@Request.application
def _module(request: Request) -> Response:
    return _respond(request, 200, "text/javascript; charset=utf-8", _MODULE)


@Request.application
def _page(request: Request) -> Response:
    content_type, body = _trace.page("index.html") or ("text/html; charset=utf-8", _NO_PAGE)
    return _respond(request, 200, content_type, body)


@Request.application
def _asset(request: Request) -> Response:
    found = _trace.page("assets/" + request.path.split("/firelane/assets/", 1)[1])
    if found is None:
        return _error(request, 404, "no such file")
    # Not cached, like everything here: names stay the same when firelane is reinstalled.
    return _respond(request, 200, *found)


def _reload_seconds(interval: float | None) -> float | None:
    """How often the page looks for new traces: as often as TensorBoard looks for new data, which may be never (0)."""
    if interval is None:
        interval = _DEFAULT_RELOAD_SECONDS
    return max(interval, _MIN_RELOAD_SECONDS) if interval > 0 else None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1


def _error(request: Request, status: int, message: str) -> Response:
    return _respond(request, status, "application/json", json.dumps({"error": message}).encode())


def _respond(request: Request, status: int, content_type: str, body: bytes) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    if content_type.startswith("text/html"):
        headers["Content-Security-Policy"] = _CONTENT_POLICY
    # TensorBoard often runs on a remote machine.
    if len(body) >= _COMPRESS_FROM_BYTES and request.accept_encodings["gzip"] > 0:
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        body = gzip.compress(body, 3)
    return Response(body, status, headers, content_type=content_type)
