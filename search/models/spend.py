"""What the calls of a run have cost and may still cost, and how that stands to its budget."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.search.records.budget import WARNING_SHARE, Budget

# A call without a known end counts at its worst case; one that was turned away is free.
_SPEND = """SELECT
    coalesce(sum(coalesce(cost_microusd, reserved_microusd)), 0),
    coalesce(sum(CASE state WHEN 'failed' THEN 0
        WHEN 'done' THEN input_tokens + cache_write_tokens + cache_read_tokens + output_tokens
        ELSE reserved_tokens END), 0),
    coalesce(sum(iif(state = 'reserved', reserved_microusd, 0)), 0),
    coalesce(sum(iif(state = 'reserved', reserved_tokens, 0)), 0)
    FROM llm_call"""


@dataclass(frozen=True)
class Amount:
    """Money and tokens."""

    microusd: int = 0
    """1e-6 USD (computed)."""
    tokens: int = 0
    """Prompts and replies."""


@dataclass(frozen=True)
class Spend:
    """Everything that the ledger of a run holds."""

    total: Amount
    """Costs of the calls that have ended and worst cases of those that are under way."""
    open: Amount
    """The part of it that is under way: some of it will be given back."""


@dataclass(frozen=True)
class Limit:
    """One limit of a budget that bounds calls, with what counts towards it."""

    name: str
    most: int
    total: int
    open: int

    def fits(self, more: int) -> bool:
        """Return whether `more` can be added now."""
        return self.total + more <= self.most

    def may_fit(self, more: int) -> bool:
        """Return whether `more` could be added if all that is under way were given back."""
        return self.total - self.open + more <= self.most

    def words(self, amount: int) -> str:
        """Return an amount of this kind as people write it."""
        return f"${amount / 1e6:.4f}" if self.name == "usd" else f"{amount:,} tokens"


def read_spend(connection: sqlite3.Connection) -> Spend:
    """Return what the calls of a run have taken from its budget."""
    microusd, tokens, open_microusd, open_tokens = connection.execute(_SPEND).fetchone()
    return Spend(Amount(microusd, tokens), Amount(open_microusd, open_tokens))


def limits(budget: Budget, spend: Spend) -> Iterator[Limit]:
    """Yield the limits of `budget` that calls count towards."""
    if budget.microusd is not None:
        yield Limit("usd", budget.microusd, spend.total.microusd, spend.open.microusd)
    if budget.tokens is not None:
        yield Limit("tokens", budget.tokens, spend.total.tokens, spend.open.tokens)


def warnings(budget: Budget, before: Spend, after: Spend) -> Iterator[Limit]:
    """Yield the limits of which a call has spent the share that is worth a warning."""
    for was, now in zip(limits(budget, before), limits(budget, after), strict=True):
        mark = WARNING_SHARE * now.most
        if was.total - was.open < mark <= now.total - now.open:
            yield now
