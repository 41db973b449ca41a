"""What the model calls of a run cost: by role, and what they bought."""

from collections.abc import Iterable, Sequence
from math import log

from kopt.config.counted import counted
from kopt.config.providers import CostKind, cost_kind
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
    cost_usd: float | None
    """A call whose end is not known counts with its reservation. None: its client reports none."""
    cost_kind: CostKind = "computed"
    """computed from the price table, or reported by the client that asked the model."""
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
    cost_usd: float | None
    """The calls of which a cost is known; None where there are calls and it is known of none."""
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
    roles = sorted((_of_role(pair, calls) for pair in pairs), key=lambda one: -(one.cost_usd or 0))
    prompt = sum(one.input_tokens + one.cache_write_tokens + one.cache_read_tokens for one in roles)
    tokens = prompt + sum(one.output_tokens for one in roles)
    cost_usd = known_usd(calls)
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


def known_usd(calls: Iterable[Row]) -> float | None:
    """Return what calls cost in all, as far as a cost is known; None if it is of none of them.

    A call counts what is reserved for it while its end is not known.
    """
    costs = [
        int(call["reserved_microusd"] if call["cost_microusd"] is None else call["cost_microusd"])
        if cost_kind(call["model"]) != "unavailable"
        else None
        for call in calls
    ]
    known = [one for one in costs if one is not None]
    return None if costs and not known else sum(known) / 1e6


def usd_words(spend: SpendFigures, digits: int = 4) -> str:
    """Return what the calls of a run cost, with how each part is known."""
    parts: list[str] = []
    for kind in dict.fromkeys(one.cost_kind for one in spend.roles):
        own = [one for one in spend.roles if one.cost_kind == kind]
        usd = sum(one.cost_usd or 0.0 for one in own)
        calls = sum(one.calls for one in own)
        if kind == "unavailable":
            parts.append(f"cost of {counted(calls, 'call')} unavailable")
        else:
            by_client = " by the client" if kind == "reported" else ""
            parts.append(f"${usd:.{digits}f} {kind}{by_client}")
    return ", ".join(parts) or f"${0:.{digits}f} computed"


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
        cost_usd=known_usd(own),
        cost_kind=cost_kind(pair[1]),
        latency_s=sum(call["latency_s"] or 0.0 for call in own),
    )
