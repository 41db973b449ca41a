"""The time of a plain copy of as many bytes: what moving the data costs a kernel that does nothing.

Several copy kernels read as many bytes as a call reads and write as many as it writes, over
rotating buffer sets as candidates are timed; the fastest counts. It is no bound: a kernel that
moves its bytes better than these is faster. `verdict.py` has the bound.
"""

from functools import cache
from pathlib import Path
from threading import Lock

from kopt.config.errors import InfraError, ToolError
from kopt.config.files import content_hash
from kopt.config.settings import Settings
from kopt.kernels.bench_result import Latency, PlainCopy
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import because
from kopt.kernels.roofline import ByteModel
from kopt.kernels.status import Status
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Program
from kopt.tools.devices.timer import TimingDevice, TimingFailure

from .kept_records import keep, load_kept
from .reference_side import candidate_side, launched_program
from .timed_case import TimedCase, timing_request, verify
from .unpaired_times import time_sides

FOLDER = Path(__file__).with_name("device_copy")
SHAPES = ((256, 1), (256, 4), (512, 2), (1024, 1))
"""(BLOCK, VECTORS) of reference.cu. Each is the fastest of them for some of the 18 Hopper
workloads on an H100 (benchmarks/headroom.json)."""
WORD_BYTES = 16
_MOST_BYTES = 1 << 30
"""The check of a copy holds some ten times its bytes in the memory of the host."""
_MOST_SPREAD = 1.1
"""The slow tenth of a copy's times over the fast one; 1.01 to 1.02 on idle H100 and H200 GPUs."""
_LEAST_PDL = (9, 0)
"""The first compute capability with programmatic dependent launch."""
_SEED = 1
_ONE_AT_A_TIME = Lock()
"""A run's first candidates are evaluated at once: the others wait for the copy of the first."""


def plain_copy(model: ByteModel, device: TimingDevice, settings: Settings) -> PlainCopy | None:
    """Return the copy of as many bytes as `model` has, measured here within the last day.

    None where it would be of more than 1 GiB: such a copy is not measured.

    Raises:
        InfraError: The device failed, or was not at rest.
        ToolError: The copy does not compile or is wrong.
        SetupError: KOPT_HOME cannot be written.
    """
    if model.total_bytes > _MOST_BYTES:
        return None
    facts = device.facts
    key = {
        "kind": "plain_copy/1",
        "device": facts.uuid,
        "name": facts.name,
        "driver": facts.driver_version,
        "read": str(model.read_bytes),
        "written": str(model.written_bytes),
        "kernel": content_hash([_source().source, repr(SHAPES)]),
    }
    with _ONE_AT_A_TIME:
        found = load_kept(settings, key, PlainCopy)
        if found is None:
            found = measure_copy(model.read_bytes, model.written_bytes, device, settings)
            _refuse_restless(found.latency)
            keep(settings, key, found)
        return found


def _refuse_restless(latency: Latency) -> None:
    """Refuse times that a search would be ended by all day although something else ran beside them.

    Raises:
        InfraError: They lie too far apart.
    """
    low, high = latency.p10_us, latency.p90_us
    if low is not None and high is not None and high > _MOST_SPREAD * low:
        raise InfraError(
            f"its times are spread from {low:.3f} to {high:.3f} us: something else may use the GPU"
        )


def measure_copy(
    read_bytes: int, written_bytes: int, device: TimingDevice, settings: Settings
) -> PlainCopy:
    """Return the fastest copy that reads and writes so many bytes, in whole words of 16.

    Raises:
        InfraError: The device failed.
        ToolError: The copy does not compile or is wrong.
    """
    case = copy_case(read_bytes, written_bytes, device, settings)
    has_pdl = device.facts.compute_capability >= _LEAST_PDL
    modes = (True, False) if has_pdl else (False,)
    shapes = [(shape, pdl) for pdl in modes for shape in SHAPES]
    copies = [_program(case, shape, pdl=pdl) for shape, pdl in shapes]
    timed = time_sides(case, timing_request(case, tuple(map(candidate_side, copies))))
    if isinstance(timed, TimingFailure):
        outcome = timed.outcome
        raise InfraError(f"the copy fails: {outcome.status}{because(outcome.diagnostics)}")
    latencies = [latency for _, latency in timed]
    best = min(range(len(shapes)), key=lambda place: latencies[place].median_us)
    verified = verify(case, copies[best], device)
    if isinstance(verified, JudgedRun):
        raise ToolError(f"the copy is wrong{because(verified.diagnostics)}")
    (block, vectors), pdl = shapes[best]
    return PlainCopy(
        read_bytes=case.workload.axes["R"] * WORD_BYTES,
        written_bytes=case.workload.axes["W"] * WORD_BYTES,
        latency=latencies[best],
        block=block,
        vectors=vectors,
        pdl=pdl,
    )


def copy_case(
    read_bytes: int, written_bytes: int, device: TimingDevice, settings: Settings
) -> TimedCase:
    """Return the workload of a copy that reads and writes so many bytes, in whole words of 16."""
    read, written = (max(1, -(-size // WORD_BYTES)) for size in (read_bytes, written_bytes))
    axes = {"N": 1, "R": read, "W": written, "R8": 8 * read, "W8": 8 * written}
    workload = Workload(name=f"r{read}xw{written}", axes=axes)
    problem = _problem().model_copy(update={"workloads": (workload,)})
    (input_seed,) = draw_hidden_seeds(1)
    return TimedCase(problem, workload, input_seed, _SEED, device, settings)


def _source() -> Candidate:
    return read_candidate(FOLDER / "reference.cu")


@cache
def _problem() -> Problem:
    return load_problem(FOLDER)


def without_dependent_launch(copy: Candidate) -> Candidate:
    """Return the copy as a plain launch: it neither waits for another kernel nor triggers one."""
    lines = copy.source.splitlines(keepends=True)
    kept = (line for line in lines if "pdl: true" not in line and "griddepcontrol" not in line)
    return Candidate("".join(kept), copy.name)


def _program(case: TimedCase, shape: tuple[int, int], *, pdl: bool) -> Program:
    """Return one copy kernel, compiled."""
    block, vectors = shape
    tune = {"BLOCK": block, "VECTORS": vectors}
    arch = case.device.facts.arch
    copy = _source() if pdl else without_dependent_launch(_source())
    asked = Case(case.problem, case.workload, copy, tune)
    compiled = compile_candidate(CompileRequest(asked, (arch,)), case.settings)
    if compiled.status is not Status.PASSED:
        raise ToolError(f"the copy does not compile{because(compiled.diagnostics)}")
    return launched_program(case, CheckRequest(asked, "quick", arch=arch), compiled)
