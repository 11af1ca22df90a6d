"""TensorBoard's Firelane tab: the viewer over the traces below --logdir or --logdir_spec. docs/tensorboard.md.

    tensorboard --logdir ./log

TensorBoard finds `Plugin` by the package's entry point. The page is the one of `firelane view`, from inside of the
module; its requests (docs/viewer-protocol.md) are answered here, without a server or a token of our own: who may open
TensorBoard may see the traces of its log folder. Requests name traces by number, never by path.
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
from .shelf import Shelf

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_SECONDS_FOR_LISTING = 2.0  # TensorBoard's first screen waits for it
_SECONDS_FOR_PAGE = 20.0
_USUAL_RELOAD_SECONDS = 5.0  # TensorBoard's default
_LEAST_RELOAD_SECONDS = 2.0
_MAX_BODY_BYTES = 64 << 10
_COMPRESS_FROM_BYTES = 4 << 10

# As strict as TensorBoard's own check of plugins allows. It may be shown in frames: notebooks do that to TensorBoard.
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self' data:; base-uri 'none'; form-action 'none'"
)
# TensorBoard imports it in the tab's frame; the page takes that frame over.
_MODULE = b'export function render() { location.replace(new URL("index.html", import.meta.url)); }\n'
_NO_PAGE = (
    b"<!doctype html><title>Firelane</title><p>This firelane was built without its viewer. In the source tree: "
    b"<code>make viewer</code>, then install it again.</p>"
)


class Plugin(TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    plugin_name = "firelane"

    def __init__(self, context: TBContext) -> None:
        super().__init__(context)
        self._logdir = Logdir(folders_of(context.logdir, getattr(context.flags, "logdir_spec", None)))
        self._reload_s = _reload_seconds(getattr(context.flags, "reload_interval", None))
        self._shelf = Shelf()

    def is_active(self) -> bool:
        return bool(self._logdir.look(_SECONDS_FOR_LISTING))

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
            return _refusal(request, 405, "only GET, and POST for SQL")
        # A page of another site cannot send this content type: its browser would ask us first, and gets no consent.
        if request.method == "POST" and request.mimetype != "application/json":
            return _refusal(request, 400, "the body is application/json")
        request.max_content_length = _MAX_BODY_BYTES
        what = request.path.split("/firelane/api/", 1)[1]
        try:
            if what == "traces" and request.method == "GET":
                return self._traces(request)
            if what.startswith("t/"):
                return self._about_trace(request, what)
        except RequestEntityTooLarge:
            return _refusal(request, 413, "the body is larger than 64 KiB")
        except Exception as error:  # TensorBoard would answer with a page that says nothing
            return _refusal(request, 500, f"{type(error).__name__}: {error}")
        return _refusal(request, 404, "no such request; docs/viewer-protocol.md lists them")

    def _traces(self, request: Request) -> Response:
        """`trace=ID` is what the page is about to show; the first where there is no such trace."""
        found = self._logdir.look(_SECONDS_FOR_PAGE)
        wanted = request.args.get("trace")
        if found and wanted is not None:
            self._shelf.open(self._logdir.trace(_number(wanted)) or found[0], fresh=True)
        entries = [self._shelf.entry(file) for file in found]
        listed = {"version": _trace.version, "reload_s": self._reload_s, "traces": entries}
        return _respond(request, 200, "application/json", json.dumps(listed).encode())

    def _about_trace(self, request: Request, what: str) -> Response:
        _, id, *rest = what.split("/")
        file = self._logdir.trace(_number(id))
        if file is None:  # an old page after a restart
            self._logdir.look(_SECONDS_FOR_PAGE)
            file = self._logdir.trace(_number(id))
        viewer = self._shelf.open(file) if file else None
        if viewer is None:
            return _refusal(request, 404, "no such trace; reload the page to see those that are there")
        viewer.wait()  # it may have been put away for others since the page saw it ready
        target = f"/api/t/0/{quote('/'.join(rest))}"
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
        return _refusal(request, 404, "no such file")
    # Not to be kept, as everything here: the name stays when firelane is installed anew.
    return _respond(request, 200, *found)


def _reload_seconds(interval: float | None) -> float | None:
    """When the page looks for new traces again: as often as TensorBoard looks for new data, which with 0 is never."""
    if interval is None:
        interval = _USUAL_RELOAD_SECONDS
    return max(interval, _LEAST_RELOAD_SECONDS) if interval > 0 else None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1


def _refusal(request: Request, status: int, message: str) -> Response:
    return _respond(request, status, "application/json", json.dumps({"error": message}).encode())


def _respond(request: Request, status: int, content_type: str, body: bytes) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    if content_type.startswith("text/html"):
        headers["Content-Security-Policy"] = _CONTENT_POLICY
    # TensorBoard is often far away.
    if len(body) >= _COMPRESS_FROM_BYTES and request.accept_encodings["gzip"] > 0:
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        body = gzip.compress(body, 3)
    return Response(body, status, headers, content_type=content_type)
