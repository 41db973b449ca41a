"""How much a run may spend, and how a budget is written: `50` evaluations, `90s`, `10m`, `2h`.

A budget bounds the search. The full check of the winner comes after it and is never cut, because
a winner that was not checked is none.
"""

import re

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.kernels.record import Record

_SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Budget(Record):
    """Limits of one run; None is no limit. Whichever is reached first ends the search."""

    evaluations: int | None = Field(default=None, gt=0)
    """Candidates that are evaluated, the starting point included."""
    seconds: float | None = Field(default=None, gt=0.0)
    """Wall time of the processes that drove the run; the time between them does not count."""

    def __str__(self) -> str:
        """Return the budget in words."""
        limits = [
            None if self.evaluations is None else f"{self.evaluations} evaluations",
            None if self.seconds is None else f"{self.seconds:g} s",
        ]
        return " or ".join(limit for limit in limits if limit) or "no limit"

    def covers(self, other: "Budget") -> bool:
        """Return whether `other` allows nothing that this budget does not."""
        return _covers(self.evaluations, other.evaluations) and _covers(self.seconds, other.seconds)


UNLIMITED = Budget()


def parse_budget(text: str) -> Budget:
    """Return the budget that `text` writes.

    Raises:
        ToolError: Neither a count nor a time; the message shows both forms.
    """
    match = re.fullmatch(r"([0-9]+)([smh]?)", text.strip())
    if match is None or int(match[1]) == 0:
        raise ToolError(
            f"budget {text!r}: write a number of evaluations (50) or a time (90s, 10m, 2h)"
        )
    if not match[2]:
        return Budget(evaluations=int(match[1]))
    return Budget(seconds=int(match[1]) * _SECONDS_PER_UNIT[match[2]])


def _covers(limit: float | None, other: float | None) -> bool:
    return limit is None or (other is not None and other <= limit)
