"""The live page of a run for clients that show views beside a tool's reply (MCP Apps, SEP-1865).

`beam_step` names the document; the client shows it in a frame of its own and reads for it what
`kopt://runs/RUN/page` and `kopt://runs/RUN/code/NUMBER` hold: the parts that `kopt view` shows.

Source:
    https://github.com/modelcontextprotocol/ext-apps, specification of 2026-01-26.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.apps import APP_MIME_TYPE, Apps
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resources import FunctionResource

from kopt.config.errors import ToolError
from kopt.config.settings import Settings

from .caller import caller_of
from .resources import resource_text

if TYPE_CHECKING:
    from kopt.server.live_view.run_pages import RunPages

RUN_VIEW = "ui://kopt/run"
_LONGEST_NUMBER = 9


def run_view() -> Apps:
    """Return the extension that offers the document; it is made when it is read."""
    apps = Apps()
    apps.add_resource(
        FunctionResource(
            uri=RUN_VIEW,
            name="run-view",
            title="A run as it goes on",
            description="The page that beam_step shows: candidates, rounds, winner, cost.",
            mime_type=APP_MIME_TYPE,
            meta={"ui": {"prefersBorder": True}},
            fn=_document,
        )
    )
    return apps


def add_run_pages(server: MCPServer[Any], settings: Settings) -> None:
    """Register what the document of `run_view` shows."""
    kept: list[RunPages] = []

    def pages(run_id: str, owner: str) -> "RunPages":
        """Return the pages, once for a server, if `owner` may see the run."""
        from kopt.search.store.run_folders import check_run_id
        from kopt.server.live_view.run_pages import RunPages  # loads numpy: not at the start

        check_run_id(run_id, owner, settings)
        if not kept:
            kept.append(RunPages(settings))
        return kept[0]

    @server.resource(
        "kopt://runs/{run_id}/page",
        name="run-page",
        title="The page of a run",
        mime_type="application/json",
    )
    async def page(run_id: str, ctx: Context[Any, Any]) -> str:
        """The parts of a run's page as HTML, for the view of beam_step."""
        return await resource_text(partial(_page, run_id, caller_of(ctx).owner, pages))

    @server.resource(
        "kopt://runs/{run_id}/code/{number}",
        name="candidate-code",
        title="Code of a candidate as HTML",
        mime_type="text/html",
    )
    async def code(run_id: str, number: str, ctx: Context[Any, Any]) -> str:
        """The code of one candidate and what it changes, for the view of beam_step."""
        return await resource_text(partial(_code, run_id, number, caller_of(ctx).owner, pages))

    del page, code


_Pages = Callable[[str, str], "RunPages"]


def _document() -> str:
    from kopt.server.live_view.run_app import app_document

    return app_document()


def _page(run_id: str, owner: str, pages: _Pages) -> str:
    from kopt.server.live_view.run_app import page_text

    return page_text(run_id, pages(run_id, owner))


def _code(run_id: str, number: str, owner: str, pages: _Pages) -> str:
    from kopt.server.live_view.run_app import code_text

    known = pages(run_id, owner)
    if not (number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER):
        raise ToolError(f"no candidate {number[:40]!r}: candidates have numbers")
    return code_text(run_id, int(number), known)
