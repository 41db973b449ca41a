"""The sessions behind `bench_headroom.py`: library paths beside empty kernels.

Sides are replayed in rounds of random order over the same rotating buffer sets as in a benchmark
(docs/measurement.md). Nothing is paired: the figures are medians, good to a percent or so.
"""

from headroom_table import PathTime, PathTimes

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import Latency, RejectedBaseline
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import because
from kopt.tools.bench.baselines import timing_rejection
from kopt.tools.bench.library_path import check_path
from kopt.tools.bench.reference_side import (
    BaselineSide,
    candidate_side,
    reference_kernel,
)
from kopt.tools.bench.timed_case import (
    TimedCase,
    find_faulty,
    timing_request,
)
from kopt.tools.bench.unpaired_times import time_sides
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.devices.timer import (
    EmptySide,
    LibrarySide,
    Side,
    SideFacts,
    TimingDevice,
    TimingFailure,
)

SEED = 1


def make_case(
    problem: Problem, workload: Workload, device: TimingDevice, settings: Settings
) -> TimedCase:
    """Return a case with hidden inputs, others in every call."""
    (input_seed,) = draw_hidden_seeds(1)
    return TimedCase(problem, workload, input_seed, SEED, device, settings)


def case_data(case: TimedCase) -> CaseData:
    """Return the inputs of the case with what they must give."""
    return case.draws[0]


def time_paths(case: TimedCase) -> PathTimes:
    """Return the times of every library path that passes its check, and of what is beside them.

    Raises:
        ToolError: reference.cu is wrong.
        InfraError: The device failed, not a library.
    """
    data = case_data(case)
    reference = candidate_side(reference_kernel(case).program)
    accepted: list[BaselineSide] = []
    rejected: list[RejectedBaseline] = []
    for baseline in case.problem.baselines:
        for pdl in baseline.pdl:
            path = check_path(case, data, LibrarySide(baseline=baseline, pdl=pdl))
            if isinstance(path, BaselineSide):
                accepted.append(path)
            else:
                rejected.append(path)
    beside = (reference, _empty(case.workload, pdl=False), _empty(case.workload, pdl=True))
    while True:
        request = timing_request(case, (*(path.side for path in accepted), *beside))
        timed = time_sides(case, request)
        if not isinstance(timed, TimingFailure):
            break
        place = find_faulty(request, timed, case.device).side
        if place is None or place >= len(accepted):
            raise _broken(case, timed)
        rejected.append(timing_rejection(accepted.pop(place).path, timed))
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


def _empty(workload: Workload, *, pdl: bool) -> Side:
    """Return an empty kernel of one warp: the least that a launch can cost."""
    launch = Launch(kernel="empty", grid=(1, 1, 1), block=(32, 1, 1), pdl=pdl, arguments=())
    plan = LaunchPlan(workload=workload.name, axes=workload.axes, defines={}, launches=(launch,))
    return EmptySide(plan=plan)


def _path_time(path: BaselineSide, facts: SideFacts, latency: Latency) -> PathTime:
    allocates = (f"it allocates memory inside the call ({facts.allocations} times)",)
    return PathTime(
        name=path.path.name,
        pdl=path.path.pdl,
        library=facts.library,
        latency=latency,
        differences=(*path.differences, *(allocates if facts.allocations else ())),
    )


def _broken(case: TimedCase, failure: TimingFailure) -> InfraError:
    outcome = failure.outcome
    said = because(outcome.diagnostics)
    return InfraError(f"kopt's own launches of {case.kernel} fail: {outcome.status}{said}")
