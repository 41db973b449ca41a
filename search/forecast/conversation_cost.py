"""What one conversation with a model costs: as it probably goes, and at the very most."""

from collections.abc import Iterator
from dataclasses import dataclass

from kopt.config.search_settings import RoleSettings
from kopt.search.models.model import Usage
from kopt.search.models.prices import PriceTable
from kopt.search.models.prompt_bound import SERVICE_TOKENS, PromptBound

from .expectations import BYTES_PER_TOKEN, MOST_RESULT_BYTES, RESULT_TOKENS


@dataclass(frozen=True)
class Talk:
    """A kind of conversation."""

    settings: RoleSettings
    system_bytes: int
    """Of tools and system prompt, the same for the whole run."""
    opening_bytes: int
    """Of the first message."""
    reply_tokens: int
    """Expected, of one reply."""
    replies: int
    """Expected."""
    most_replies: int


@dataclass(frozen=True)
class Cost:
    """Of one conversation."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    microusd: int
    """1e-6 USD (computed)."""


def expected_cost(talk: Talk, prices: PriceTable, is_first: bool) -> Cost:
    """Return what a conversation probably costs; the first of a role writes the cache.

    Raises:
        SetupError: The price of the model is not known.
    """
    usages = list(_expected_usages(talk, is_first))
    return Cost(
        calls=len(usages),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        microusd=sum(prices.cost_microusd(talk.settings.model, usage) for usage in usages),
    )


def most_cost(talk: Talk, prices: PriceTable) -> Cost:
    """Return what a conversation costs if every reply is as long and as late as it may be.

    Nothing is read from the cache then, and a byte is a token.

    Raises:
        SetupError: The price of the model is not known.
    """
    settings = talk.settings
    bounds = [
        PromptBound(
            hour_tokens=talk.system_bytes,
            other_tokens=talk.opening_bytes
            + SERVICE_TOKENS
            + turn * (settings.max_output_tokens + MOST_RESULT_BYTES),
        )
        for turn in range(talk.most_replies)
    ]
    return Cost(
        calls=len(bounds),
        prompt_tokens=sum(bound.tokens for bound in bounds),
        output_tokens=len(bounds) * settings.max_output_tokens,
        microusd=sum(
            prices.worst_case_microusd(settings.model, bound, settings.max_output_tokens)
            for bound in bounds
        ),
    )


def _expected_usages(talk: Talk, is_first: bool) -> Iterator[Usage]:
    """Yield the calls: a conversation with tools is cached as it grows, another one is over."""
    system = talk.system_bytes // BYTES_PER_TOKEN
    grown = talk.opening_bytes // BYTES_PER_TOKEN
    read = 0
    for turn in range(talk.replies):
        writes_system = is_first and turn == 0
        yield Usage(
            input_tokens=0 if talk.replies > 1 else grown,
            cache_write_5m_tokens=grown - read if talk.replies > 1 else 0,
            cache_write_1h_tokens=system if writes_system else 0,
            cache_read_tokens=read + (0 if writes_system else system),
            output_tokens=talk.reply_tokens,
        )
        read = grown
        grown += talk.reply_tokens + RESULT_TOKENS
