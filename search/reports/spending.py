"""What the model calls of a run cost: by role, and what they bought."""

from collections.abc import Iterable, Sequence
from math import log

from kopt.kernels.record import Record
from kopt.search.store.run_reader import Row


class RoleSpend(Record):
    """The calls of one role with one model."""

    role: str
    model: str
    calls: int
    failed: int
    """Calls without an answer: turned away for nothing, or of unknown end."""
    input_tokens: int
    """Neither read from the provider's cache nor written to it."""
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int
    """Thinking included."""
    cost_usd: float
    """Computed from the price table. A call whose end is not known counts with its reservation."""
    latency_s: float
    """The sum over its calls; branches call at the same time."""


class SpendFigures(Record):
    """All model calls of a run."""

    roles: tuple[RoleSpend, ...]
    """Dearest first; empty for a run without a model."""
    calls: int
    tokens: int
    """Prompt and output of all calls."""
    cached_share: float | None
    """Share of all prompt tokens that were read from the provider's cache; None without a call."""
    cost_usd: float
    unsettled: int
    """Calls whose end is not known, counted at their reservation."""
    gain_per_usd: float | None
    """How much faster than the start the best is, as a fraction, per dollar; None without either.
    Estimated where the times are."""
    log_speedup_per_mtok: float | None
    """Natural logarithm of the speedup over the start per million tokens."""


def sum_spend(calls: Sequence[Row], ratio: float | None) -> SpendFigures:
    """Return what `calls`, rows of `llm_call`, cost; `ratio` is speed of the best over the start.

    Source:
        ln(speedup) per token adds up over steps that build on each other, a ratio does not.
    """
    pairs = dict.fromkeys((call["role"], call["model"]) for call in calls)
    roles = sorted((_of_role(pair, calls) for pair in pairs), key=lambda one: -one.cost_usd)
    prompt = sum(one.input_tokens + one.cache_write_tokens + one.cache_read_tokens for one in roles)
    tokens = prompt + sum(one.output_tokens for one in roles)
    cost_usd = sum(one.cost_usd for one in roles)
    return SpendFigures(
        roles=tuple(roles),
        calls=len(calls),
        tokens=tokens,
        cached_share=sum(one.cache_read_tokens for one in roles) / prompt if prompt else None,
        cost_usd=cost_usd,
        unsettled=sum(call["state"] in ("reserved", "unknown") for call in calls),
        gain_per_usd=(ratio - 1.0) / cost_usd if ratio and cost_usd else None,
        log_speedup_per_mtok=log(ratio) / (tokens / 1e6) if ratio and tokens else None,
    )


def counted_microusd(call: Row) -> int:
    """Return what a call counts: its cost, or what is reserved for it while that is not known."""
    cost = call["cost_microusd"]
    return int(call["reserved_microusd"] if cost is None else cost)


def call_tokens(call: Row) -> int:
    """Return the tokens of a call, prompt and reply; 0 while it has no answer."""
    names = ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")
    return sum(call[name] or 0 for name in names)


def _of_role(pair: tuple[str, str], calls: Iterable[Row]) -> RoleSpend:
    own = [call for call in calls if (call["role"], call["model"]) == pair]

    def total(column: str) -> int:
        return sum(call[column] or 0 for call in own)

    return RoleSpend(
        role=pair[0],
        model=pair[1],
        calls=len(own),
        failed=sum(call["state"] in ("failed", "unknown") for call in own),
        input_tokens=total("input_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        cache_read_tokens=total("cache_read_tokens"),
        output_tokens=total("output_tokens"),
        cost_usd=sum(counted_microusd(call) for call in own) / 1e6,
        latency_s=sum(call["latency_s"] or 0.0 for call in own),
    )
