"""How kopt was called, and the first line on a terminal, before the command's modules are read.

The line stands on stderr, and is wiped before the command itself writes anything.
"""

import shutil
import sys
from pathlib import Path

SILENT = frozenset(("completion", "help", "serve", "setup"))
"""Commands that answer at once, or speak to a program."""
_standing = [""]


def announce(words: list[str]) -> None:
    """Write which command is starting, on a terminal."""
    asks_for_help = "--help" in words or "-h" in words
    is_heard = bool(words) and words[0] not in SILENT and not words[0].startswith("-")
    if is_heard and not asks_for_help and sys.stderr.isatty():
        _standing[0] = f"kopt {words[0]} ..."
        sys.stderr.write(_standing[0])
        sys.stderr.flush()


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
