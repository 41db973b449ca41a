"""Sides replayed in random order over the rotating sets of a benchmark, without pairs or a verdict.

For what is known beside a benchmark: the times of copies, library paths, empty kernels. A median
here is good to a percent or so; what is to be told apart more finely is compared in pairs.
"""

import numpy as np

from kopt.config.errors import InfraError
from kopt.kernels.bench_result import Latency
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import (
    SideFacts,
    TimingFailure,
    TimingRequest,
    TimingSession,
    replay_each,
)

from .disturbances import is_disturbed
from .intervals import summarize_latency
from .timed_case import TimedCase

SEQUENCES = 12
ROUNDS = 4
"""Replays of each side in a sequence."""
_SEED = 1

Timed = tuple[SideFacts, Latency]


@begun_again
def time_sides(case: TimedCase, request: TimingRequest) -> list[Timed] | TimingFailure:
    """Return what each side is and how long a call of it takes, or the failure of one of them.

    Raises:
        InfraError: Throttling or clock changes disturbed the whole session.
    """
    with case.device.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return session
        times = _replay(session, len(request.sides))
        if isinstance(times, TimingFailure):
            return times
        facts = session.facts.sides
    if not times[0]:
        raise InfraError(f"every replay of {case.kernel} was disturbed by a throttling device")
    return list(zip(facts, map(summarize_latency, times), strict=True))


def _replay(session: TimingSession, sides: int) -> list[list[float]] | TimingFailure:
    """Return the times of each side in the sequences that nothing disturbed."""
    rng = np.random.default_rng(_SEED)
    times: list[list[float]] = [[] for _ in range(sides)]
    sequences = [
        [int(side) for _ in range(ROUNDS) for side in rng.permutation(sides)]
        for _ in range(SEQUENCES)
    ]
    measured = replay_each(session, sequences)
    if isinstance(measured, TimingFailure):
        return measured
    for sequence, replays in zip(sequences, measured, strict=True):
        if is_disturbed(replays):
            continue
        for side, time_us in zip(sequence, replays.us_per_call, strict=True):
            times[side].append(time_us)
    return times
