"""How kopt was called, and the first line on stderr, before the command's modules are read.

On a terminal the line is wiped before the command itself writes anything. In a pipe or a log it
stays, and only commands that may take seconds write it; a caller that takes JSON gets none.
"""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

SILENT = frozenset(("completion", "help", "setup"))
"""Commands that answer at once."""
LONG = frozenset(
    (
        "bench",
        "check",
        "compile",
        "docs build",
        "docs push",
        "export",
        "import",
        "new",
        "profile",
        "review",
        "run",
        "selftest",
        "split",
        "step",
        "stitch",
        "study",
        "suite run",
        "verify",
        "view",
    )
)
"""Commands that may take over two seconds."""
_standing = [""]


def announce(words: list[str]) -> None:
    """Write which command is starting; a stderr that cannot be written to is no error."""
    asks_for_help = "--help" in words or "-h" in words
    is_heard = bool(words) and words[0] not in SILENT and not words[0].startswith("-")
    if not is_heard or asks_for_help:
        return
    with suppress(OSError):
        if sys.stderr.isatty():
            _standing[0] = f"kopt {words[0]} ..."
            sys.stderr.write(_standing[0])
            sys.stderr.flush()
        elif "--json" not in words or "--progress" in words:
            named = next((name for name in (words[0], " ".join(words[:2])) if name in LONG), "")
            if named:
                print(f"kopt {named} ...", file=sys.stderr, flush=True)


def wipe() -> None:
    """Take the line away, if it stands."""
    text, _standing[0] = _standing[0], ""
    if text:
        sys.stderr.write(f"\r{' ' * len(text)}\r")
        sys.stderr.flush()


def program_name() -> str:
    """Return how a shell finds kopt: by its name, or by the path that it was called by."""
    called = sys.argv[0]
    is_found = Path(called).name != "kopt" or shutil.which("kopt") is not None
    return "kopt" if is_found else called
