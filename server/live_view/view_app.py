"""The live view as an ASGI application: who may look, the routes, what a browser may do with them.

A page can be looked at under a secret address alone, in a browser on this machine. Pages hold text
of candidates and models: it is escaped, and the policy forbids whatever the pages do not need.
"""

import hmac
from http import HTTPStatus
from pathlib import Path

import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kopt.config.errors import KoptError, ToolError
from kopt.search.reports.markup import style_sheet
from kopt.server.protocol.web.listen_address import Access

from .changes import ChangeFeed
from .run_pages import RunPages
from .views import MOST_SIDES, LiveView, whole_view

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SCRIPTS = ("page.js", "view.js")


def view_app(pages: RunPages, access: Access, token: str) -> ASGIApp:
    """Return the live view of `pages` for who knows `token`."""
    routes = _Routes(pages, f"/{token}/")
    app = Starlette(
        routes=[
            Route(f"/{token}/", routes.page),
            Route(f"/{token}/events", routes.events),
            Route(f"/{token}/runs/{{run}}", routes.page),
            Route(f"/{token}/runs/{{run}}/events", routes.events),
            Route(f"/{token}/runs/{{run}}/code/{{seq:int}}", routes.code),
            Route(f"/{token}/assets/page.css", _style),
            *(Route(f"/{token}/assets/{name}", _script) for name in _SCRIPTS),
        ],
        exception_handlers={ToolError: _not_found, KoptError: _unreadable},
    )
    return _Guarded(app, access, token)


class _Guarded:
    """Lets in who names this machine and knows the token; hardens every response."""

    def __init__(self, app: ASGIApp, access: Access, token: str) -> None:
        self._app = app
        self._access = access
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, hardened)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # A page of another name that resolves to this machine cannot send another Host than it.
        if not self._access.allows_host(host):
            return _plain(421, "kopt view answers under 127.0.0.1 and localhost only")
        if not self._access.allows_origin(headers.get("origin")):
            return _plain(403, "other web pages may not ask kopt view")
        first = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self._token):
            return _plain(403, "open the whole address that kopt view has printed")
        return None


class _Routes:
    """What is answered; stores are read in threads, since that may take a while."""

    def __init__(self, pages: RunPages, address: str) -> None:
        self._pages = pages
        self._address = address

    async def page(self, request: Request) -> Response:
        view = self._view(request)
        await anyio.to_thread.run_sync(view.stamp)  # a run that is not there is no page
        query = f"?{request.url.query}" if request.url.query else ""
        events = f"{request.url.path.removesuffix('/')}/events{query}"
        return HTMLResponse(await anyio.to_thread.run_sync(whole_view, view, events))

    async def events(self, request: Request) -> Response:
        feed = ChangeFeed(self._view(request))
        return StreamingResponse(feed.texts(), media_type="text/event-stream")

    async def code(self, request: Request) -> Response:
        seq: int = request.path_params["seq"]
        part = await anyio.to_thread.run_sync(self._view(request).code_part, seq)
        return _plain(404, f"no candidate {seq}") if part is None else HTMLResponse(part)

    def _view(self, request: Request) -> LiveView:
        named: list[str] = request.query_params.getlist("runs")
        runs = tuple(dict.fromkeys(run for text in named for run in text.split(",") if run))
        if "run" in request.path_params:
            runs = (request.path_params["run"],)
        if len(runs) > MOST_SIDES:
            raise ToolError(f"{len(runs)} runs side by side; at most {MOST_SIDES} can be read")
        return LiveView(self._pages, self._address, runs)


async def _style(_: Request) -> Response:
    return PlainTextResponse(style_sheet(), media_type="text/css")


async def _script(request: Request) -> Response:
    path = Path(__file__).with_name(request.url.path.rpartition("/")[2])
    return PlainTextResponse(path.read_text("utf-8"), media_type="text/javascript")


async def _not_found(_: Request, error: Exception) -> Response:
    return _plain(404, str(error))


async def _unreadable(_: Request, error: Exception) -> Response:
    return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


def _plain(status: int, words: str) -> Response:
    return PlainTextResponse(f"kopt: {words}\n", status)
