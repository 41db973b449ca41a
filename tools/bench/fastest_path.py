"""Which of several library paths is fastest here: timed against each other in one session.

The order alone is the result; a time from here stands in no record.
"""

from collections.abc import Sequence
from statistics import median

import numpy as np

from kopt.kernels.bench_result import RejectedBaseline
from kopt.kernels.record import because
from kopt.tools.check.case_data import CaseData
from kopt.tools.devices.timer import LibrarySide, TimingFailure, TimingRequest

from .blame import find_faulty
from .library_path import AcceptedPath
from .timed_case import TimedCase, timing_request

_SEQUENCES = 8
_ROUNDS = 4
"""Replays of each path in a sequence."""


def sort_paths(
    case: TimedCase, data: CaseData, paths: Sequence[AcceptedPath]
) -> tuple[tuple[AcceptedPath, ...], tuple[RejectedBaseline, ...]]:
    """Return the paths, fastest first, and those that fail when they are timed.

    Raises:
        InfraError: The device failed, not a path.
    """
    left = list(paths)
    failed: list[RejectedBaseline] = []
    while len(left) > 1:
        request = timing_request(case, data, tuple(path.side for path in left))
        times = _replay_all(case, request)
        if not isinstance(times, TimingFailure):
            order = sorted(range(len(left)), key=lambda place: times[place])
            return tuple(left[place] for place in order), tuple(failed)
        failure = find_faulty(request, times, case.device)
        if failure.side is None:
            raise ValueError("a failure that was attributed has a side")
        failed.append(timing_rejection(left.pop(failure.side).side, failure))
    return tuple(left), tuple(failed)


def timing_rejection(side: LibrarySide, failure: TimingFailure) -> RejectedBaseline:
    """Return why a path that passed its check is not a baseline after all."""
    outcome = failure.outcome
    said = because(outcome.diagnostics)
    return RejectedBaseline(
        name=side.baseline.name,
        pdl=side.pdl,
        status="failed_check",
        reason=f"it fails when it is timed, with {outcome.status}{said}",
    )


def _replay_all(case: TimedCase, request: TimingRequest) -> list[float] | TimingFailure:
    """Return the median time of each side in microseconds."""
    rng = np.random.default_rng(case.seed)
    times: list[list[float]] = [[] for _ in request.sides]
    with case.device.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return session
        for _ in range(_SEQUENCES):
            rounds = [rng.permutation(len(times)).tolist() for _ in range(_ROUNDS)]
            sequence: list[int] = [side for one in rounds for side in one]
            replays = session.replay(sequence)
            if isinstance(replays, TimingFailure):
                return replays
            for side, time_us in zip(sequence, replays.us_per_call, strict=True):
                times[side].append(time_us)
    return [median(values) for values in times]
