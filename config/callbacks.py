"""Callbacks that are told, line by line, how far the work is."""

from collections.abc import Callable


def ignore(_: object) -> None:
    """Do nothing: the default of callbacks that a caller leaves out."""


def prefixed(progress: Callable[[str], None], before: str) -> Callable[[str], None]:
    """Return `progress` with `before` and a colon in front of each line."""
    return lambda line: progress(f"{before}: {line}")
