"""Calling the command line in the test's own process, the way the installed `kopt` does."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ending:
    """How one call of `kopt` ended."""

    code: int
    stdout: str
    stderr: str
    """What followed the line that names the command."""
    first_line: str = ""
    """`kopt check ...`: what a command that may take seconds writes to stderr at once."""

    @classmethod
    def of(cls, code: int, stdout: str, stderr: str) -> "Ending":
        """Return the ending of a call that wrote all of this."""
        first = re.match(r"kopt \w+(?: \w+)? \.\.\.\n", stderr)
        length = first.end() if first else 0
        return cls(code, stdout, stderr[length:], stderr[:length].rstrip())

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout; fails if there is anything else."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The objects of the one list on stdout; fails if there is anything else."""
        documents: list[dict[str, Any]] = json.loads(self.stdout)
        return documents


Kopt = Callable[..., Ending]
"""Runs `kopt WORDS`; the fixture `kopt` of tests/server/conftest.py."""
