"""The cost of one role in a run: how many conversations, of which size, at which price."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

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
from kopt.search.runs.run import RunRequest

from .expectations import (
    BYTES_PER_TOKEN,
    FIXES_PER_BRANCH,
    LEARNING_TOKENS,
    MOST_RESULT_BYTES,
    REPLY_TOKENS,
    RESULT_TOKENS,
    ROUND_TOKENS,
    TOOL_USES,
    expected_branches,
    expected_merges,
    expected_rounds,
    expected_updates,
    most_branches,
    most_merges,
    most_rounds,
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
    microusd: int
    """1e-6 USD (computed)."""


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
        microusd=sum(prices.cost_microusd(talk.settings.model, usage) for usage in usages),
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
        microusd=sum(
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
    expected_usd: float
    """Estimated tokens at the prices of the table."""
    most_usd: float
    """Computed: every reply as long and as late as it may be."""
    priced: str
    """Date of the price."""


@dataclass(frozen=True)
class Planned:
    """The inputs of all forecasts of a run."""

    request: RunRequest
    briefing: Briefing
    prices: PriceTable
    start_bytes: int
    """Size of the starting kernel."""

    @property
    def search(self) -> SearchSettings:
        """How the search behaves."""
        return self.request.search


def forecast_role(role: Role, planned: Planned) -> RoleForecast:
    """Return what is asked of `role` in a whole run.

    Raises:
        SetupError: The price of its model is not known.
    """
    settings = planned.search.roles.of(role)
    expected, most = _conversations(role, planned)
    talk = _talk(role, planned)
    first, later = (expected_cost(talk, planned.prices, is_first) for is_first in (True, False))
    worst = most_cost(talk, planned.prices)
    total = _sum(first, later, expected)
    return RoleForecast(
        role=role,
        model=settings.model,
        effort=settings.effort,
        max_output_tokens=settings.max_output_tokens,
        tool_calls=settings.tool_calls,
        expected_conversations=expected,
        most_conversations=most,
        expected_calls=total.calls,
        most_calls=worst.calls * most,
        expected_tokens=total.prompt_tokens + total.output_tokens,
        expected_usd=total.microusd / 1e6,
        most_usd=worst.microusd * most / 1e6,
        priced=planned.prices.price(settings.model).dated,
    )


def _conversations(role: Role, planned: Planned) -> tuple[int, int]:
    """Return how many conversations a role has: as expected, and at most."""
    search = planned.search
    rounds, longest = expected_rounds(search), most_rounds(search)
    is_planned = search.strategy == "beam" and search.agent == "full"
    planned_rounds = len(rounds) if is_planned else 0
    merges_at_end = 1 if rounds and search.combine_top_k > 1 else 0
    branches = sum(expected_branches(n, search) for n in rounds)
    most = sum(most_branches(n, search) for n in longest)
    merges = sum(expected_merges(n, search) for n in rounds)
    most_merged = sum(most_merges(n, search) for n in longest)
    updates = expected_updates(search)
    by_role: Mapping[Role, tuple[int, int]] = {
        "planner": (planned_rounds, planned_rounds),
        "reflector": (planned_rounds, planned_rounds),
        "coder": (branches - merges, most),
        "combiner": (merges + merges_at_end, most_merged + merges_at_end),
        "fixer": (
            ceil((branches + merges_at_end) * FIXES_PER_BRANCH) if search.fix_attempts else 0,
            (most + merges_at_end) * (search.fix_attempts + 1),
        ),
        "learner": (STAGES * updates, _most_learning(planned, most) if updates else 0),
        "verifier": (1, search.beam.width) if rounds else (0, 0),
    }
    return by_role[role]


def _most_learning(planned: Planned, branches: int) -> int:
    """Return the learner's conversations: after every round, and two on each program's state."""
    rounds = len(most_rounds(planned.search))
    programs = 1 + branches * (1 + planned.search.fix_attempts + 1)
    return STAGES * rounds + 2 * programs


def _talk(role: Role, planned: Planned) -> ConversationSize:
    settings = planned.search.roles.of(role)
    is_minimal = planned.search.agent == "minimal"
    blocks = planned.briefing.system_blocks(role)
    system_bytes = sum(len(block.text.encode()) for block in blocks)
    system_bytes += 0 if is_minimal else RUN_TOKENS * BYTES_PER_TOKEN
    if role in _AUTHORS:
        sources = 2 if role == "combiner" else 1
        tools = () if is_minimal else TOOL_DEFINITIONS
        uses = 0 if is_minimal else settings.tool_calls
        return ConversationSize(
            settings=settings,
            system_bytes=system_bytes + sum(len(t.model_dump_json()) for t in tools),
            opening_bytes=_HYPOTHESIS_BYTES + sources * 2 * planned.start_bytes,
            reply_tokens=REPLY_TOKENS[role],
            replies=1 + min(TOOL_USES, uses),
            most_replies=uses + SPARE_REPLIES,
        )
    return ConversationSize(
        settings=settings,
        system_bytes=system_bytes,
        opening_bytes=_shown_bytes(role, planned),
        reply_tokens=REPLY_TOKENS[role],
        replies=1,
        most_replies=_ANSWER_REPLIES,
    )


def _shown_bytes(role: Role, planned: Planned) -> int:
    """Return the size of what a role without tools is shown first."""
    source = 2 * planned.start_bytes
    match role:
        case "planner":
            return ROUND_TOKENS * BYTES_PER_TOKEN + planned.search.beam.width * source
        case "learner":
            return LEARNING_TOKENS * BYTES_PER_TOKEN
        case "verifier":
            return source
        case _:
            return ROUND_TOKENS * BYTES_PER_TOKEN


def _sum(first: ConversationCost, later: ConversationCost, conversations: int) -> ConversationCost:
    if not conversations:
        return ConversationCost(0, 0, 0, 0)
    others = conversations - 1
    return ConversationCost(
        calls=first.calls + others * later.calls,
        prompt_tokens=first.prompt_tokens + others * later.prompt_tokens,
        output_tokens=first.output_tokens + others * later.output_tokens,
        microusd=first.microusd + others * later.microusd,
    )
