"""Assumptions about agents: sizes, numbers of replies, shares.

Guesses, all in this one place and all told with the forecast. The most that can happen needs no
guess: it follows from the limits of the settings.
"""

from math import ceil

from kopt.config.search_settings import MAX_CROSSES, Role, SearchSettings

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


def expected_rounds(settings: SearchSettings) -> range:
    """Return the numbers of the rounds that agents probably fill.

    Trajectories take their steps side by side, as many at once as the settings say.
    """
    if settings.strategy == "maic_rl":
        return range(1, _groups(settings) * settings.maic_rl.steps + 1)
    return range(1, settings.beam.refine_rounds + 1)


def most_rounds(settings: SearchSettings) -> range:
    """Return the numbers of the rounds that agents fill at most."""
    if settings.strategy == "maic_rl":
        return range(1, _groups(settings) * settings.maic_rl.most_steps + 1)
    return expected_rounds(settings)


def expected_branches(number: int, settings: SearchSettings) -> int:
    """Return how many candidates agents probably write in round `number`, from 1, merged ones too.

    The first starts as many families as the beam is wide. The others refine every member, expand
    some, and merge one pair. A round of trajectories takes the next step of each.
    """
    if settings.strategy == "maic_rl":
        return _steps_of_round(number, settings, settings.maic_rl.steps)
    width = settings.beam.width
    if number == 1:
        return width
    expanded = round(width * EXPANDED_SHARE) * settings.tree_branching_factor
    return min(settings.round_size, width + expanded + expected_merges(number, settings))


def expected_merges(number: int, settings: SearchSettings) -> int:
    """Return how many of them are merged."""
    return 1 if _merges(number, settings) else 0


def most_branches(number: int, settings: SearchSettings) -> int:
    """Return how many candidates agents write at most in round `number`."""
    if settings.strategy == "maic_rl":
        return _steps_of_round(number, settings, settings.maic_rl.most_steps)
    return settings.beam.width if number == 1 else settings.round_size


def most_merges(number: int, settings: SearchSettings) -> int:
    """Return how many of them are merged at most."""
    return MAX_CROSSES if _merges(number, settings) else 0


def expected_updates(settings: SearchSettings) -> int:
    """Return how often the learner probably goes through memory: in the end, and between."""
    if settings.memory == "off" or settings.agent == "minimal" or not expected_rounds(settings):
        return 0
    if settings.strategy == "maic_rl":
        return max(1, settings.maic_rl.trajectories // settings.maic_rl.update_every)
    return 1


def _merges(number: int, settings: SearchSettings) -> bool:
    is_beam = settings.strategy == "beam"
    return is_beam and number > 1 and settings.population_crossover


def _groups(settings: SearchSettings) -> int:
    """Return how many groups of trajectories there are, one after the other."""
    return ceil(settings.maic_rl.trajectories / settings.maic_rl.at_once)


def _steps_of_round(number: int, settings: SearchSettings, steps: int) -> int:
    """Return the candidates of a round, where every group takes so many `steps`."""
    size = settings.maic_rl
    begun = (number - 1) // steps * size.at_once
    return min(size.at_once, size.trajectories - begun) * size.actions
