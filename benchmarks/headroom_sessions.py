"""The sessions behind `bench_headroom.py`: library paths beside empty kernels, and copies.

Sides are replayed in rounds of random order over the same rotating buffer sets as in a benchmark
(docs/measurement.md). Nothing is paired: the figures are medians, good to a percent or so.
"""

from functools import cache
from pathlib import Path

import numpy as np
from headroom_table import CopyTime, PathTime, PathTimes

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import Latency, RejectedBaseline
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.tools.bench.baselines import timing_rejection
from kopt.tools.bench.disturbances import is_disturbed
from kopt.tools.bench.intervals import summarize_latency
from kopt.tools.bench.library_path import check_path
from kopt.tools.bench.reference_side import (
    BaselineSide,
    candidate_side,
    launched_program,
    reference_program,
)
from kopt.tools.bench.timed_case import (
    TimedCase,
    find_faulty,
    timing_request,
    verify,
)
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Program
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
    reference = candidate_side(reference_program(case))
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


FOLDER = Path(__file__).with_name("device_copy")
ROW_BYTES = 2 * 64 * 2
"""Read and written for one row of 64 bf16 values."""
SHAPES = ((256, 1), (256, 4), (512, 2), (1024, 1))
"""(BLOCK, VECTORS) of reference.cu."""
_PDL = "    pdl: true\n"


def copied_bytes(total_bytes: int) -> int:
    """Return the bytes that a copy of `total_bytes` reads and writes: whole rows of it."""
    return -(-total_bytes // ROW_BYTES) * ROW_BYTES


def time_copy(total_bytes: int, device: TimingDevice, settings: Settings) -> CopyTime:
    """Return the fastest copy that reads and writes `copied_bytes(total_bytes)`.

    Raises:
        InfraError: The device failed.
        ToolError: The copy does not compile or is wrong.
    """
    rows = copied_bytes(total_bytes) // ROW_BYTES
    problem = _problem()
    workload = Workload(name=f"n{rows}", axes={"N": rows, "W": 64})
    case = make_case(
        problem.model_copy(update={"workloads": (workload,)}), workload, device, settings
    )
    shapes = [(*shape, pdl) for pdl in (True, False) for shape in SHAPES]
    copies = [_copy(case, *shape) for shape in shapes]
    sides = tuple(candidate_side(copy) for copy in copies)
    timed = time_sides(case, timing_request(case, sides))
    if isinstance(timed, TimingFailure):
        outcome = timed.outcome
        raise InfraError(f"the copy fails: {outcome.status}{because(outcome.diagnostics)}")
    latencies = [latency for _, latency in timed]
    best = min(range(len(shapes)), key=lambda place: latencies[place].median_us)
    verified = verify(case, copies[best], device)
    if isinstance(verified, JudgedRun):
        raise ToolError(f"the copy is wrong{because(verified.diagnostics)}")
    block, vectors, pdl = shapes[best]
    return CopyTime(
        total_bytes=copied_bytes(total_bytes),
        latency=latencies[best],
        block=block,
        vectors=vectors,
        pdl=pdl,
    )


@cache
def _problem() -> Problem:
    return load_problem(FOLDER)


def _copy(case: TimedCase, block: int, vectors: int, pdl: bool) -> Program:
    """Return one copy kernel, compiled."""
    candidate = read_candidate(FOLDER / "reference.cu")
    if not pdl:
        candidate = Candidate(candidate.source.replace(_PDL, ""), candidate.name)
    tune = {"BLOCK": block, "VECTORS": vectors}
    arch = case.device.facts.arch
    compiled = compile_candidate(
        CompileRequest(Case(case.problem, case.workload, candidate, tune), (arch,)), case.settings
    )
    if compiled.status is not Status.PASSED:
        raise ToolError(f"the copy does not compile{because(compiled.diagnostics)}")
    check = CheckRequest(Case(case.problem, case.workload, candidate, tune), "quick", arch=arch)
    return launched_program(case, check, compiled)
