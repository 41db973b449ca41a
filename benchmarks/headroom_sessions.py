"""The sessions behind `bench_headroom.py`: library paths beside empty kernels, and copies.

Sides are replayed in rounds of random order over the same rotating buffer sets as in a benchmark
(docs/measurement.md). Nothing is paired: the figures are medians, good to a percent or so.
"""

import numpy as np
from headroom_records import PathTime, PathTimes

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import Latency, RejectedBaseline
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import because
from kopt.tools.bench.blame import find_faulty
from kopt.tools.bench.device_state import is_disturbed
from kopt.tools.bench.fastest_path import timing_rejection
from kopt.tools.bench.intervals import summarize_latency
from kopt.tools.bench.library_path import AcceptedPath, check_path
from kopt.tools.bench.reference_side import reference_side
from kopt.tools.bench.timed_case import REGIME, TimedCase, timing_request
from kopt.tools.check.case_data import CaseData, CaseKey
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.oracle_cache import open_cache
from kopt.tools.devices.timer import (
    EmptySide,
    LibrarySide,
    Side,
    SideFacts,
    TimingDevice,
    TimingFailure,
    TimingRequest,
    TimingSession,
)

SEQUENCES = 12
ROUNDS = 4
"""Replays of each side in a sequence."""
SEED = 1

Timed = tuple[SideFacts, Latency]


def make_case(
    problem: Problem, workload: Workload, device: TimingDevice, settings: Settings
) -> TimedCase:
    """Return a case with inputs of the hidden pool, the same in every call."""
    (input_seed,) = draw_hidden_seeds(f"headroom/{problem.name}", 1, settings)
    return TimedCase(problem, workload, input_seed, SEED, device, settings)


def case_data(case: TimedCase) -> CaseData:
    """Return the inputs of the case with what they must give."""
    key = CaseKey(case.problem, case.workload, case.input_seed, REGIME)
    return open_cache(case.settings).load(key)


def time_paths(case: TimedCase) -> PathTimes:
    """Return the times of every library path that passes its check, and of what is beside them.

    Raises:
        ToolError: reference.cu is wrong.
        InfraError: The device failed, not a library.
    """
    data = case_data(case)
    reference = reference_side(case)
    accepted: list[AcceptedPath] = []
    rejected: list[RejectedBaseline] = []
    for baseline in case.problem.baselines:
        for pdl in baseline.pdl:
            path = check_path(case, data, LibrarySide(baseline=baseline, pdl=pdl))
            if isinstance(path, AcceptedPath):
                accepted.append(path)
            else:
                rejected.append(path)
    beside = (reference.side, _empty(case.workload, pdl=False), _empty(case.workload, pdl=True))
    while True:
        request = timing_request(case, data, (*(path.side for path in accepted), *beside))
        timed = time_sides(case, request)
        if not isinstance(timed, TimingFailure):
            break
        place = find_faulty(request, timed, case.device).side
        if place is None or place >= len(accepted):
            raise _broken(case, timed)
        rejected.append(timing_rejection(accepted.pop(place).side, timed))
    *libraries, (_, reference_latency), (_, empty), (_, empty_pdl) = timed
    return PathTimes(
        paths=tuple(
            _path_time(path, facts, latency)
            for path, (facts, latency) in zip(accepted, libraries, strict=True)
        ),
        rejected=tuple(rejected),
        reference=reference_latency,
        empty_us=empty.median_us,
        empty_pdl_us=empty_pdl.median_us,
    )


def time_sides(case: TimedCase, request: TimingRequest) -> list[Timed] | TimingFailure:
    """Return what each side is and how long a call of it takes, or the failure of one of them.

    Raises:
        InfraError: Throttling or clock changes disturbed most of the session.
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
    rng = np.random.default_rng(SEED)
    times: list[list[float]] = [[] for _ in range(sides)]
    for _ in range(SEQUENCES):
        sequence = [int(side) for _ in range(ROUNDS) for side in rng.permutation(sides)]
        replays = session.replay(sequence)
        if isinstance(replays, TimingFailure):
            return replays
        if is_disturbed(replays):
            continue
        for side, time_us in zip(sequence, replays.us_per_call, strict=True):
            times[side].append(time_us)
    return times


def _empty(workload: Workload, *, pdl: bool) -> Side:
    """Return an empty kernel of one warp: the least that a launch can cost."""
    launch = Launch(kernel="empty", grid=(1, 1, 1), block=(32, 1, 1), pdl=pdl, arguments=())
    plan = LaunchPlan(workload=workload.name, axes=workload.axes, defines={}, launches=(launch,))
    return EmptySide(plan=plan)


def _path_time(path: AcceptedPath, facts: SideFacts, latency: Latency) -> PathTime:
    allocates = (f"it allocates memory inside the call ({facts.allocations} times)",)
    return PathTime(
        name=path.side.baseline.name,
        pdl=path.side.pdl,
        library=facts.library,
        latency=latency,
        differences=(*path.differences, *(allocates if facts.allocations else ())),
    )


def _broken(case: TimedCase, failure: TimingFailure) -> InfraError:
    outcome = failure.outcome
    said = because(outcome.diagnostics)
    return InfraError(f"kopt's own launches of {case.kernel} fail: {outcome.status}{said}")
