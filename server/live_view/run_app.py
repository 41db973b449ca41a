"""The page of a run inside an MCP client that shows views (MCP Apps): a document, then its parts.

The document is the same for every run and loads nothing. What it shows it asks the client for,
which reads it as a resource of the server that the tool is of.
"""

import base64
import hashlib
import json
from pathlib import Path

from markupsafe import Markup

from kopt import __version__
from kopt.config.errors import ToolError
from kopt.search.reports.markup import macro, style_sheet

from .run_pages import RunPages
from .views import PARTS_OF_RUN, LiveView

_ADDRESS = "kopt://"
"""What the addresses of code begin with: `kopt://runs/RUN/code/3`."""
_SCRIPTS = ("page.js", "app.js")
_HOME = "$KOPT_HOME"


def app_document() -> str:
    """Return the document: HTML with its style and scripts in it, and no run."""
    script = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in _SCRIPTS)
    style = style_sheet()
    allowed = f"style-src {_hash(style)}; script-src {_hash(script)}"
    policy = f"default-src 'none'; form-action 'none'; base-uri 'none'; {allowed}"
    words = (policy, __version__, Markup(style), Markup(script), PARTS_OF_RUN)
    return str(macro("live.html", "app", *words))


def page_text(run: str, pages: RunPages) -> str:
    """Return the parts of a run's page, and whether a process drives it, as JSON.

    Raises:
        ToolError: There is no such run, or none that began.
        KoptError: It cannot be read.
    """
    report = pages.run(run).contents.report
    parts = LiveView(pages, _ADDRESS, (run,)).parts()
    shown = {name: part.replace(str(pages.home.parent), _HOME) for name, part in parts.items()}
    return json.dumps({"run": run, "is_running": report.status == "running", "parts": shown})


def code_text(run: str, number: int, pages: RunPages) -> str:
    """Return the code of a candidate as HTML.

    Raises:
        ToolError: There is no such run or candidate.
        KoptError: The run cannot be read.
    """
    part = LiveView(pages, _ADDRESS, (run,)).code_part(number)
    if part is None:
        raise ToolError(f"{run} has no candidate {number}")
    return str(part)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
