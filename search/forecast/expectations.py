"""Assumptions about agents: sizes, numbers of replies, shares.

Guesses, all in this one place and all told with the forecast. The most that can happen needs no
guess: it follows from the limits of the settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kopt.config.search_settings import MAX_CROSSES, MaicRlSettings, Role, SearchSettings

BYTES_PER_TOKEN = 3
"""Bytes of a token in CUDA sources and English prose (estimated); at most, a byte is a token."""
TOOL_USES = 3
"""Tool calls of one author: a compile, a check, a look at something."""
FIXES_PER_BRANCH = 0.5
"""Half of the candidates need one repair."""
EXPANDED_SHARE = 0.5
"""Share of the beam that is fast enough to be expanded."""
RESULT_TOKENS = 700
"""Tokens of a tool's answer."""
MOST_RESULT_BYTES = 24_000
"""No tool answers more: documents are cut at 2,000 tokens, findings at less."""
ROUND_TOKENS = 4_000
"""Tokens of the tables, profiles, lessons and documents for planner and reflector."""
LEARNING_TOKENS = 7_000
"""Tokens of the samples and entries that the learner is shown."""
REPLY_TOKENS: dict[Role, int] = {
    "planner": 6_000,
    "coder": 3_500,
    "fixer": 2_500,
    "reflector": 1_500,
    "combiner": 3_500,
    "learner": 1_500,
    "verifier": 3_000,
}
"""Tokens of one reply, thinking included."""

ASSUMPTIONS = (
    f"a token is {BYTES_PER_TOKEN} bytes",
    f"an author uses {TOOL_USES} tools, each in a reply of its own",
    f"{FIXES_PER_BRANCH:.0%} of the branches need one repair",
    f"{EXPANDED_SHARE:.0%} of the beam are fast enough to be expanded",
    "replies have "
    + ", ".join(f"{tokens:,} ({role})" for role, tokens in REPLY_TOKENS.items())
    + " tokens",
    "what is marked for the provider's cache is written once and read from then on",
)
"""The assumptions as the forecast prints them."""


@dataclass(frozen=True)
class AgentRound:
    """What agents write in one round."""

    branches: int
    """Candidates, merged ones too; repairs left out."""
    merges: int
    """How many of them are merged."""


def agent_rounds(settings: SearchSettings, at_most: bool = False) -> tuple[AgentRound, ...]:
    """Return the rounds that agents probably fill, or `at_most`, in their order.

    The first round of a beam starts as many families as the beam is wide. The others refine every
    member, expand some, and merge one pair. A round of trajectories takes the next step of each;
    they go side by side, as many at once as the settings say.
    """
    if settings.strategy == "maic_rl":
        return tuple(_rounds_of_trajectories(settings.maic_rl, at_most))
    width, later = settings.beam.width, settings.round_size
    merges = MAX_CROSSES if at_most else 1
    merges = merges if settings.population_crossover else 0
    if not at_most:
        expanded = round(width * EXPANDED_SHARE) * settings.tree_branching_factor
        later = min(later, width + expanded + merges)
    rounds = (AgentRound(width, 0), *[AgentRound(later, merges)] * settings.beam.refine_rounds)
    return rounds[: settings.beam.refine_rounds]


def expected_updates(settings: SearchSettings) -> int:
    """Return how often the learner probably goes through memory: in the end, and between."""
    if settings.memory == "off" or settings.agent == "minimal" or not agent_rounds(settings):
        return 0
    if settings.strategy == "maic_rl":
        return max(1, settings.maic_rl.trajectories // settings.maic_rl.update_every)
    return 1


def _rounds_of_trajectories(size: MaicRlSettings, at_most: bool) -> Iterator[AgentRound]:
    steps = size.most_steps if at_most else size.steps
    for begun in range(0, size.trajectories, size.at_once):
        taken = min(size.at_once, size.trajectories - begun) * size.actions
        yield from [AgentRound(taken, 0)] * steps
