"""Whether the user agrees to what a search may cost, asked before anything is begun.

On a terminal the user is asked. Elsewhere nobody can be: there, an amount of dollars that the
command line names, or --yes, is the agreement, and a call without either is refused.
"""

import sys
from dataclasses import dataclass

import click

from kopt.config.errors import ToolError
from kopt.search.records.budget import Budget

from .session import Session

MOST_MISREAD = 25
"""The most evaluations that may have been meant as dollars."""


@dataclass(frozen=True)
class Spending:
    """What runs that ask Claude may cost."""

    budget: Budget
    """Of each run."""
    runs: int = 1
    is_yes: bool = False
    """--yes was given."""
    is_amount_named: bool = False
    """Whether the command line, or the earlier session of a run, has named the dollars."""

    @property
    def words(self) -> str:
        """The most that is paid, in words: `Claude, up to $25`."""
        usd = self.budget.usd
        if usd is None:
            each = "" if self.runs == 1 else f" for each of {self.runs} runs"
            return f"Claude, without a limit in dollars{each}"
        if self.runs == 1:
            return f"Claude, up to ${usd:g}"
        return f"Claude, {self.runs} runs up to ${usd:g} each, ${usd * self.runs:,g} in all"


def agree_to_spend(spending: Spending, session: Session, is_quiet: bool) -> None:
    """Say what the runs may cost; on a terminal, ask.

    Raises:
        ToolError: The user does not agree, or could not be asked and has agreed to no amount.
    """
    line = f"{spending.words} (Ctrl-C stops)"
    if not spending.is_yes and can_be_asked(session):
        if not click.confirm(f"{line}. Go on?", err=True):
            raise ToolError("nothing was begun, and nothing is paid")
        return
    if not (spending.is_yes or spending.is_amount_named):
        raise ToolError(
            f"this asks {spending.words}, and there is no terminal to ask on: name an amount"
            " (--budget 5usd) or add --yes; kopt run --no-models asks nobody and costs nothing"
        )
    if not is_quiet:
        click.echo(line, err=True)


def can_be_asked(session: Session) -> bool:
    """Return whether a person sits at this call: a terminal to read from and to write to."""
    return not session.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def warn_of_eaten_dollar(budget: Budget) -> None:
    """Say how a small number of evaluations is read, where dollars may have been meant.

    A shell takes `$2` out of an unquoted `$25`, and leaves 5.
    """
    count = budget.evaluations
    if count is not None and count <= MOST_MISREAD and budget.usd is None:
        said = f"if you wrote $2{count} the shell took the $2: write 2{count}usd"
        click.echo(f"--budget {count} is {count} evaluations ({said})", err=True)
