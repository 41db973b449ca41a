"""The cost of one role in a run: how many conversations, of which size, at which price."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from kopt.config.providers import cost_kind
from kopt.config.search_settings import Role, RoleSettings, SearchSettings
from kopt.kernels.record import Record
from kopt.search.agents.agent_context import Briefing
from kopt.search.agents.agent_tools import TOOL_DEFINITIONS
from kopt.search.agents.candidate_writer import SPARE_REPLIES
from kopt.search.agents.documents import RUN_TOKENS
from kopt.search.agents.learner import STAGES
from kopt.search.models.model import Usage
from kopt.search.models.prices import PriceTable
from kopt.search.models.prompt_bound import SERVICE_TOKENS, PromptBound

from .expectations import (
    BYTES_PER_TOKEN,
    FIXES_PER_BRANCH,
    LEARNING_TOKENS,
    MOST_RESULT_BYTES,
    REPLY_TOKENS,
    RESULT_TOKENS,
    ROUND_TOKENS,
    TOOL_USES,
    agent_rounds,
    expected_updates,
)


@dataclass(frozen=True)
class ConversationSize:
    """Sizes of one kind of conversation."""

    settings: RoleSettings
    system_bytes: int
    """Bytes of tools and system prompt, the same for the whole run."""
    opening_bytes: int
    """Bytes of the first message."""
    reply_tokens: int
    """Expected tokens of one reply."""
    replies: int
    """Expected number of replies."""
    most_replies: int


@dataclass(frozen=True)
class ConversationCost:
    """Calls, tokens and dollars of one conversation."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    microusd: int | None
    """1e-6 USD (computed); None where no cost is ever known."""


def expected_cost(talk: ConversationSize, prices: PriceTable, is_first: bool) -> ConversationCost:
    """Return what a conversation probably costs; the first of a role writes the cache.

    Raises:
        SetupError: The price of the model is not known.
    """
    usages = list(_expected_usages(talk, is_first))
    return ConversationCost(
        calls=len(usages),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        microusd=None
        if cost_kind(talk.settings.model) == "unavailable"
        else sum(prices.cost_microusd(talk.settings.model, usage) for usage in usages),
    )


def most_cost(talk: ConversationSize, prices: PriceTable) -> ConversationCost:
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
    return ConversationCost(
        calls=len(bounds),
        prompt_tokens=sum(bound.tokens for bound in bounds),
        output_tokens=len(bounds) * settings.max_output_tokens,
        microusd=None
        if cost_kind(settings.model) == "unavailable"
        else sum(
            prices.worst_case_microusd(settings.model, bound, settings.max_output_tokens)
            for bound in bounds
        ),
    )


def _expected_usages(talk: ConversationSize, is_first: bool) -> Iterator[Usage]:
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


_ANSWER_REPLIES = 2  # an answer, and one more where something in it has to be repaired
_HYPOTHESIS_BYTES = 2_500
_AUTHORS: tuple[Role, ...] = ("coder", "fixer", "combiner")


class RoleForecast(Record):
    """Everything that is asked of one role."""

    role: Role
    model: str
    effort: str
    max_output_tokens: int
    tool_calls: int
    expected_conversations: int
    """Estimated."""
    most_conversations: int
    """Computed."""
    expected_calls: int
    most_calls: int
    expected_tokens: int
    """Prompts and replies, estimated."""
    expected_usd: float | None
    """Estimated tokens at the prices of the table; None where no cost is ever known."""
    most_usd: float | None
    """Computed: every reply as long and as late as it may be; None likewise."""
    priced: str | None
    """Date of the price; None likewise."""


@dataclass(frozen=True)
class Planned:
    """The inputs of all forecasts of a run."""

    search: SearchSettings
    briefing: Briefing
    prices: PriceTable
    start_bytes: int
    """Size of the starting kernel."""


def forecast_role(role: Role, planned: Planned) -> RoleForecast:
    """Return what is asked of `role` in a whole run.

    Raises:
        SetupError: The price of its model is not known.
    """
    settings = planned.search.asked(role)
    expected, most = _conversations(role, planned.search)
    talk = _talk(role, planned)
    first, later = (expected_cost(talk, planned.prices, is_first) for is_first in (True, False))
    costs = [first, *[later] * (expected - 1)] if expected else []
    worst = most_cost(talk, planned.prices)
    is_unknown = worst.microusd is None
    return RoleForecast(
        role=role,
        model=settings.model,
        effort=settings.effort,
        max_output_tokens=settings.max_output_tokens,
        tool_calls=settings.tool_calls,
        expected_conversations=expected,
        most_conversations=most,
        expected_calls=sum(one.calls for one in costs),
        most_calls=worst.calls * most,
        expected_tokens=sum(one.prompt_tokens + one.output_tokens for one in costs),
        expected_usd=None if is_unknown else sum(one.microusd or 0 for one in costs) / 1e6,
        most_usd=None if worst.microusd is None else worst.microusd * most / 1e6,
        priced=None if is_unknown else planned.prices.price(settings.model).dated,
    )


def _conversations(role: Role, search: SearchSettings) -> tuple[int, int]:
    """Return how many conversations a role has: as expected, and at most."""
    rounds, longest = agent_rounds(search), agent_rounds(search, at_most=True)
    is_planned = search.strategy == "beam" and search.agent == "full"
    planned_rounds = len(rounds) if is_planned else 0
    at_end = 1 if rounds and search.combine_top_k > 1 else 0
    branches, most = (sum(one.branches for one in some) for some in (rounds, longest))
    merges, most_merges = (sum(one.merges for one in some) for some in (rounds, longest))
    updates = expected_updates(search)
    programs = 1 + most * (1 + search.fix_attempts + 1)
    by_role: Mapping[Role, tuple[int, int]] = {
        "planner": (planned_rounds, planned_rounds),
        "reflector": (planned_rounds, planned_rounds),
        "coder": (branches - merges, most),
        "combiner": (merges + at_end, most_merges + at_end),
        "fixer": (
            ceil((branches + at_end) * FIXES_PER_BRANCH) if search.fix_attempts else 0,
            (most + at_end) * (search.fix_attempts + 1),
        ),
        # At most after every round, and two on each program's state.
        "learner": (STAGES * updates, STAGES * len(longest) + 2 * programs if updates else 0),
        "verifier": (1, search.beam.width) if rounds else (0, 0),
    }
    return by_role[role]


def _talk(role: Role, planned: Planned) -> ConversationSize:
    settings = planned.search.asked(role)
    is_minimal = planned.search.agent == "minimal"
    blocks = planned.briefing.system_blocks(role)
    system_bytes = sum(len(block.text.encode()) for block in blocks)
    system_bytes += 0 if is_minimal else RUN_TOKENS * BYTES_PER_TOKEN
    replies, most_replies = 1, _ANSWER_REPLIES
    if role in _AUTHORS:
        tools = () if is_minimal else TOOL_DEFINITIONS
        uses = 0 if is_minimal else settings.tool_calls
        system_bytes += sum(len(tool.model_dump_json()) for tool in tools)
        replies, most_replies = 1 + min(TOOL_USES, uses), uses + SPARE_REPLIES
    return ConversationSize(
        settings=settings,
        system_bytes=system_bytes,
        opening_bytes=_shown_bytes(role, planned),
        reply_tokens=REPLY_TOKENS[role],
        replies=replies,
        most_replies=most_replies,
    )


def _shown_bytes(role: Role, planned: Planned) -> int:
    """Return the size of what a role is shown first."""
    source = 2 * planned.start_bytes
    match role:
        case "coder" | "fixer":
            return _HYPOTHESIS_BYTES + source
        case "combiner":
            return _HYPOTHESIS_BYTES + 2 * source
        case "planner":
            return ROUND_TOKENS * BYTES_PER_TOKEN + planned.search.beam.width * source
        case "learner":
            return LEARNING_TOKENS * BYTES_PER_TOKEN
        case "verifier":
            return source
        case "reflector":
            return ROUND_TOKENS * BYTES_PER_TOKEN
