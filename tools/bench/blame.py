"""Whose fault a failure under timing is, where the timer cannot tell.

After a sticky error between replays, or with damaged guard zones, any side of the session may be
to blame. Each is then replayed in a session of its own: the one that fails alone did it.
"""

from dataclasses import replace

from kopt.config.errors import InfraError
from kopt.tools.devices.timer import Timer, TimingFailure, TimingRequest

_REPLAYS = 50


def find_faulty(request: TimingRequest, failure: TimingFailure, timer: Timer) -> TimingFailure:
    """Return a failure whose side is known: `failure`, or that of the first side to fail alone.

    Args:
        request: Of the session that failed, which is closed.
        failure: How it failed.
        timer: Opens a session per side.

    Raises:
        InfraError: No side fails alone.
    """
    if failure.side is not None:
        return failure
    for place, side in enumerate(request.sides):
        alone = _replay_alone(replace(request, sides=(side,)), timer)
        if alone is not None:
            return TimingFailure(place, alone.outcome)
    diagnostics = failure.outcome.diagnostics
    said = f" ({diagnostics[0].message})" if diagnostics else ""
    raise InfraError(
        f"timing {request.problem.kernel_id(request.workload)} ended with "
        f"{failure.outcome.status}{said}, and no side fails alone; try again"
    )


def _replay_alone(request: TimingRequest, timer: Timer) -> TimingFailure | None:
    with timer.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return session
        replays = session.replay((0,) * _REPLAYS)
        if isinstance(replays, TimingFailure):
            return replays
        outputs = session.collect()
        return outputs if isinstance(outputs, TimingFailure) else None
