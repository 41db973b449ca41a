"""`kopt cache`: what KOPT_HOME keeps to save time, and how to clear it."""

import click
from rich.text import Text

from kopt.server.caches import CacheList, clear_caches, list_caches
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.sizes import size_words
from kopt.server.views.tables import View, grid

_ALL = "all"
EPILOG = """\b
Examples:
  kopt cache
  kopt cache --clear
  kopt cache --clear oracle

\b
Clearing is safe at any time: everything is made again when it is needed, and what
another process of kopt works with stays. --clear without a name leaves out docs,
which need the network: kopt cache --clear docs.
Exit codes: 0 shown or cleared, 2 no such cache."""


@click.command("cache", epilog=EPILOG)
@click.option(
    "--clear",
    is_flag=False,
    flag_value=_ALL,
    metavar="[NAME]",
    help="Remove what a cache holds.  [default NAME: all but docs]",
)
@command_body(uses_home=False)
def command(session: Session, clear: str | None) -> int:
    """Show the caches of KOPT_HOME: their sizes, limits, and what each is for."""
    if clear is None:
        found = list_caches(session.settings)
    else:
        found = clear_caches(None if clear == _ALL else clear, session.settings)
    session.show(found, cache_view(found))
    return ExitCode.PASSED


def cache_view(found: CacheList) -> View:
    """Yield a line for each cache, and what was cleared."""
    table = grid("cache", "size#", "files#", "limit", "holds")
    for one in found.caches:
        table.add_row(
            one.name, size_words(one.size_bytes), f"{one.files:,}", one.limit, one.purpose
        )
    total = size_words(sum(one.size_bytes for one in found.caches))
    table.add_row("all", total, f"{sum(one.files for one in found.caches):,}", "", "")
    yield table
    if found.cleared:
        yield Text(f"Cleared {', '.join(found.cleared)}: {size_words(found.freed_bytes)} freed")
    if found.in_use:
        names = ", ".join(found.in_use)
        yield Text(
            f"Not cleared, because another kopt uses this KOPT_HOME: {names}. End it (a run, kopt"
            " serve) and clear again.",
            style="yellow",
        )
