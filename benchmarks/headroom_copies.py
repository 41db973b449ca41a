"""A copy of as many bytes as a kernel moves, timed like the kernel: cold, in a graph, in rotation.

The bandwidth of a large copy says little of a workload of 400 KB: launch and latency are most of
its time. The fastest of a few copy kernels at the same byte count says what is within reach of one
launch there; that the fastest was chosen after the fact flatters it by the noise, under 1 %.
"""

from functools import cache
from pathlib import Path

from headroom_records import CopyTime
from headroom_sessions import case_data, make_case, time_sides

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.tools.bench.reference_side import PlannedSide, planned_side
from kopt.tools.bench.timed_case import Refused, TimedCase, timing_request, verify
from kopt.tools.check.request import CheckRequest
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.timer import TimingDevice, TimingFailure

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
    sides = tuple(copy.side for copy in copies)
    timed = time_sides(case, timing_request(case, case_data(case), sides))
    if isinstance(timed, TimingFailure):
        outcome = timed.outcome
        raise InfraError(f"the copy fails: {outcome.status}{because(outcome.diagnostics)}")
    latencies = [latency for _, latency in timed]
    best = min(range(len(shapes)), key=lambda place: latencies[place].median_us)
    verified = verify(case, copies[best].program, device)
    if isinstance(verified, Refused):
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


def _copy(case: TimedCase, block: int, vectors: int, pdl: bool) -> PlannedSide:
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
    return planned_side(case, check, compiled)
