"""The closed lists that results use: status, verdict, provenance.

docs/statuses.md says what to do about each status.
"""

from enum import StrEnum


class Status(StrEnum):
    """How the evaluation of a candidate ended."""

    PASSED = "passed"
    PLAN_ERROR = "plan_error"
    COMPILE_ERROR = "compile_error"
    REFUSED = "refused"
    INCORRECT = "incorrect"
    UNWRITTEN_OUTPUT = "unwritten_output"
    INPUT_MUTATED = "input_mutated"
    OUT_OF_BOUNDS = "out_of_bounds"
    MISALIGNED = "misaligned"
    UNINITIALIZED_READ = "uninitialized_read"
    DATA_RACE = "data_race"
    BARRIER_DIVERGENCE = "barrier_divergence"
    LAUNCH_ERROR = "launch_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    REWARD_HACK = "reward_hack"
    UNSUPPORTED_ON_SIM = "unsupported_on_sim"
    QUARANTINED = "quarantined"


class Verdict(StrEnum):
    """What a comparison of speed says; a field of its own beside the status."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    IMPOSSIBLE = "impossible"
    NOT_LIKE_FOR_LIKE = "not_like_for_like"
    ESTIMATED = "estimated"


class Provenance(StrEnum):
    """How a value came about. Unavailable is never written as 0."""

    MEASURED = "measured"
    COMPUTED = "computed"
    ESTIMATED = "estimated"
    UNAVAILABLE = "unavailable"
