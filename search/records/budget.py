"""Budgets of runs: limits, and what calls have spent of them.

A budget is written as `50`, `90s`, `5usd`, `2Mtok` or `gpu:10m`.

A budget bounds the search. The full check of the winner comes after it and is never cut, because
a winner that was not checked is none.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.providers import COST_KINDS
from kopt.config.search_settings import SearchSettings
from kopt.kernels.record import Record

WARNING_SHARE = 0.8
"""A run says so when it has spent this share of a limit."""

_SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}
_TOKENS_PER_UNIT = {"tok": 1, "ktok": 1_000, "Mtok": 1_000_000}
_FORMS = (
    "write a number of evaluations (50) or a time (90s, 10m, 2h), dollars (5usd, or in quotes"
    " '$5', which a shell takes otherwise), tokens (400ktok, 2Mtok), time on the GPU (gpu:10m), or"
    " several with commas between them"
)


class Budget(Record):
    """Limits of one run; None is no limit. Whichever is reached first ends the search."""

    evaluations: int | None = Field(default=None, gt=0)
    """Candidates that are evaluated, the starting point included."""
    seconds: float | None = Field(default=None, gt=0.0)
    """Wall time of the processes that drove the run, from the end of the starting point's
    evaluation; the time between processes does not count."""
    tokens: int | None = Field(default=None, gt=0)
    """Tokens of all prompts and replies, whether read from a cache or not."""
    usd: float | None = Field(default=None, gt=0.0)
    """US dollars for models: computed from the table of prices, or reported by a client."""
    gpu_seconds: float | None = Field(default=None, gt=0.0)
    """Time for which evaluations, profiles and the tools of agents held the GPU."""

    @property
    def microusd(self) -> int | None:
        """The limit of dollars in 1e-6 USD, as the ledger counts."""
        return None if self.usd is None else round(self.usd * 1e6)

    def __str__(self) -> str:
        """Return the budget in words."""
        limits = [
            None if self.evaluations is None else f"{self.evaluations} evaluations",
            None if self.seconds is None else f"{self.seconds:g} s",
            None if self.tokens is None else f"{self.tokens:,} tokens",
            None if self.usd is None else f"${self.usd:g}",
            None if self.gpu_seconds is None else f"{self.gpu_seconds:g} s of the GPU",
        ]
        return " or ".join(limit for limit in limits if limit) or "no limit"

    def doubled(self) -> "Budget":
        """Return twice every limit."""
        found = {name: getattr(self, name) for name in _LIMITS}
        return Budget(**{name: 2 * limit for name, limit in found.items() if limit is not None})

    def share(self, part: float) -> "Budget":
        """Return this part of every limit, of whole numbers at least one."""
        if part == 1.0:
            return self
        found: dict[str, int | float] = {}
        for name in _LIMITS:
            limit = getattr(self, name)
            if limit is not None:
                is_whole = isinstance(limit, int)
                found[name] = max(round(limit * part), 1) if is_whole else limit * part
        return Budget.model_validate(found)

    @property
    def written(self) -> str:
        """The budget as `--budget` takes it; empty without a limit."""
        limits = [
            None if self.evaluations is None else f"{self.evaluations}",
            None if self.seconds is None else f"{self.seconds:g}s",
            None if self.tokens is None else f"{self.tokens}tok",
            None if self.usd is None else f"{self.usd:g}usd",
            None if self.gpu_seconds is None else f"gpu:{self.gpu_seconds:g}s",
        ]
        return ",".join(limit for limit in limits if limit)

    def for_models(self, search: SearchSettings) -> "Budget":
        """Return this budget, limited to the dollars of `search` if it names no limit of its own.

        Without any where the client that is asked reports no cost: none could be kept.
        """
        is_known = COST_KINDS[search.models.provider] != "unavailable"
        usd = search.budget_usd if self.usd is None else self.usd
        return self.model_copy(update={"usd": usd if is_known else None})

    def covers(self, other: "Budget") -> bool:
        """Return whether `other` allows nothing that this budget does not."""
        return all(_covers(getattr(self, name), getattr(other, name)) for name in _LIMITS)


UNLIMITED = Budget()
_LIMITS = tuple(Budget.model_fields)


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


def parse_budget(text: str) -> Budget:
    """Return the budget that `text` writes.

    Raises:
        ToolError: A part is no limit, or two parts limit the same; the message shows all forms.
    """
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, value = _limit(part.strip(), text)
        if name in limits:
            raise ToolError(f"budget {text!r} limits {name} twice")
        limits[name] = value
    return Budget.model_validate(limits)


def _limit(part: str, text: str) -> tuple[str, float]:
    for pattern, name, value in _READERS:
        match = re.fullmatch(pattern, part)
        if match is not None and (amount := value(match)) > 0:
            return name, amount
    raise ToolError(f"budget {text!r}: {_FORMS}")


def _seconds(match: re.Match[str]) -> float:
    return float(match[1]) * _SECONDS_PER_UNIT[match[2]]


def _tokens(match: re.Match[str]) -> int:
    return round(float(match[1]) * _TOKENS_PER_UNIT[match[2]])


_Reader = tuple[str, str, Callable[[re.Match[str]], float]]
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_READERS: tuple[_Reader, ...] = (
    (r"([0-9]{1,9})", "evaluations", lambda match: int(match[1])),
    (_NUMBER + "([smh])", "seconds", _seconds),
    (f"gpu:{_NUMBER}([smh])", "gpu_seconds", _seconds),
    (r"\$" + _NUMBER, "usd", lambda match: float(match[1])),
    (_NUMBER + " ?usd", "usd", lambda match: float(match[1])),
    (_NUMBER + "([kM]?tok)", "tokens", _tokens),
)


def _covers(limit: float | None, other: float | None) -> bool:
    return limit is None or (other is not None and other <= limit)
