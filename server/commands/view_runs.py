"""`kopt view`: runs as live pages in a browser on this machine."""

import threading
import webbrowser
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import click

from kopt.config.errors import ToolError
from kopt.config.settings import settings_from_environment
from kopt.search.store.run_folders import find_run

EPILOG = """\b
Examples:
  kopt view                                every run
  kopt view 120000-000                     one run, while it goes on or afterwards
  kopt view 120000-000 140000-000          runs side by side
  kopt view --port 9000 --open             open the browser, too

\b
RUN is an id or any part of one that fits a single run. The page is served to
this machine alone, under an address with a secret that is new each time; on
another machine forward the port: ssh -N -L 8766:127.0.0.1:8766 HOST
The view reads; it starts, stops and changes nothing (docs/view.md). Ctrl-C ends
it with exit code 130."""
DEFAULT_PORT = 8766


@click.command("view", epilog=EPILOG)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=DEFAULT_PORT,
    help=f"Where to listen on loopback; 0: any free port.  [default: {DEFAULT_PORT}]",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--problems",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of your own problems, beside the packaged ones (or KOPT_PROBLEMS).",
)
def command(runs: tuple[str, ...], port: int, opens: bool, problems: Path | None) -> None:
    """Show runs as live pages: candidates, times, code, cost, while a search goes on.

    It works whoever drives the run: another terminal, an agent, a job of the server.
    """
    settings = settings_from_environment()
    if problems is not None:
        settings = replace(settings, problems=problems.absolute())
    named = [find_run(run, settings).name for run in runs]
    # Not at the top: neither `kopt view --help` nor a refusal needs any of it.
    from kopt.server.live_view.view_server import open_view
    from kopt.server.live_view.views import MOST_SIDES

    if len(named) > MOST_SIDES:
        raise ToolError(f"{len(named)} runs side by side; at most {MOST_SIDES} can be read")

    def say_ready(address: str) -> None:
        page = address + _page(named)
        click.echo(f"{page}\nOpen it in a browser on this machine; Ctrl-C ends kopt view.")
        if opens:  # in a thread: a browser in this terminal would hold up the server
            threading.Thread(target=_open, args=(page,), daemon=True).start()

    open_view(settings, port, say_ready).serve()


def _open(page: str) -> None:
    if not webbrowser.open(page):
        click.echo("kopt view: no browser could be opened here", err=True)


def _page(runs: list[str]) -> str:
    """Return which page shows `runs`, below the address of the view."""
    if not runs:
        return ""
    return f"runs/{quote(runs[0])}" if len(runs) == 1 else f"?runs={','.join(map(quote, runs))}"
