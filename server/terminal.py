"""The console that writes to a terminal: with styles, unless the user wants none."""

import sys
from typing import Any

from rich.console import Console

from kopt.config.settings import color_is_refused


def terminal_console(**options: Any) -> Console:
    """Return a console that takes text as it is: no markup, no highlighting, no emoji codes.

    With NO_COLOR bold and dim go, too: rich alone would leave them.
    """
    if color_is_refused():
        options["color_system"] = None
    return Console(markup=False, highlight=False, emoji=False, **options)


def redraws_stderr() -> bool:
    """Return whether stderr is a terminal on which a line can be changed; TERM=dumb cannot."""
    return sys.stderr.isatty() and not terminal_console(stderr=True).is_dumb_terminal
