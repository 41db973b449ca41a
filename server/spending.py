"""Whether the user agrees to what a search may cost, asked before anything is begun.

On a terminal the user is asked. Elsewhere nobody can be: there, an amount of dollars that the
command line names, or --yes, is the agreement, and a call without either is refused.
"""

import sys
from dataclasses import dataclass

import click

from kopt.config.errors import ToolError
from kopt.config.providers import COST_KINDS, NAMES, Provider
from kopt.config.search_settings import SearchSettings
from kopt.search.records.budget import UNLIMITED, Budget

from .session import Session

MOST_MISREAD = 25
"""The most evaluations that may have been meant as dollars."""


@dataclass(frozen=True)
class Spending:
    """What runs that ask a model may cost."""

    budget: Budget
    """Of each run."""
    provider: Provider = "anthropic"
    runs: int = 1
    is_yes: bool = False
    """--yes was given."""
    named: Budget = UNLIMITED
    """The limits that the command line names."""

    @property
    def is_amount_named(self) -> bool:
        """Whether the command line has named the most that may be spent, in what is counted."""
        return (self.named.usd if self._has_cost else self.named.tokens) is not None

    def is_within(self, agreed: Budget) -> bool:
        """Return whether it is no more than what was agreed to before with the same provider."""
        if not self._has_cost:
            return Budget(tokens=agreed.tokens).covers(Budget(tokens=self.budget.tokens))
        return agreed.usd is not None and Budget(usd=agreed.usd).covers(Budget(usd=self.budget.usd))

    @property
    def words(self) -> str:
        """The most that is paid, in words: `Claude, up to $25`."""
        name, usd = NAMES[self.provider], self.budget.usd
        each = "" if self.runs == 1 else f" for each of {self.runs} runs"
        if not self._has_cost:
            tokens = self.budget.tokens
            most = "without a limit in tokens" if tokens is None else f"up to {tokens:,} tokens"
            return f"{name} by its own login, {most}{each}; it reports no dollars"
        if usd is None:
            return f"{name}{self._how}, without a limit in dollars{each}"
        if self.runs == 1:
            return f"{name}{self._how}, up to ${usd:g}"
        all_usd = f"${usd * self.runs:,g} in all"
        return f"{name}{self._how}, {self.runs} runs up to ${usd:g} each, {all_usd}"

    @property
    def example(self) -> str:
        """A `--budget` that names the most."""
        return "5usd" if self._has_cost else "2Mtok"

    @property
    def _has_cost(self) -> bool:
        return COST_KINDS[self.provider] != "unavailable"

    @property
    def _how(self) -> str:
        """How the cost is known, where it is not computed here."""
        is_reported = COST_KINDS[self.provider] == "reported"
        return " by its own login, by the cost that it reports" if is_reported else ""


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
            f" (--budget {spending.example}) or add --yes; kopt run --no-models asks nobody and"
            " costs nothing"
        )
    if not is_quiet:
        click.echo(line, err=True)


def refuse_uncountable_dollars(search: SearchSettings, named: Budget) -> None:
    """Refuse a limit in dollars that could not be kept, because no cost is ever known.

    Raises:
        ToolError: There is one; the message says which limits can be kept.
    """
    provider = search.models.provider
    if named.usd is not None and COST_KINDS[provider] == "unavailable":
        raise ToolError(
            f"{NAMES[provider]} reports no cost, so {named.usd:g}usd cannot be kept: limit tokens"
            " (--budget 2Mtok), evaluations (50) or time (1h)"
        )


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
