"""What each code of CUDA, each damage and each end means: a status, or a failure of the machine."""

from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pytest

from kopt.config.errors import InfraError
from kopt.kernels.plan import LaunchPlan, Scratch
from kopt.kernels.problem import Baseline
from kopt.kernels.status import Status
from kopt.tools.devices.timer import CandidateSide, LibrarySide
from kopt.tools.gpu.faults import damage_outcome, fault_outcome, owns_memory, timeout_outcome
from kopt.tools.gpu.messages import BufferDamage, Fault, Step
from support.tiny_problem import tiny_problem

STEPS: tuple[Step, ...] = get_args(Step)
INFRA = None

# A kernel at work is to blame for these at any step; what no list has is never its doing.
RUNNING = {
    "ILLEGAL_ADDRESS": Status.OUT_OF_BOUNDS,
    "MISALIGNED_ADDRESS": Status.MISALIGNED,
    "LAUNCH_FAILED": Status.CRASH,
    "ILLEGAL_INSTRUCTION": Status.CRASH,
    "INVALID_ADDRESS_SPACE": Status.CRASH,
    "INVALID_PC": Status.CRASH,
    "HARDWARE_STACK_ERROR": Status.CRASH,
    "ASSERT": Status.CRASH,
    "TENSOR_MEMORY_LEAK": Status.CRASH,
    "LAUNCH_TIMEOUT": Status.TIMEOUT,
}
# Refused by the call itself: launch_error at load, encode, launch, capture, and in a library.
REFUSED = [
    "INVALID_VALUE",
    "OUT_OF_MEMORY",
    "LAUNCH_OUT_OF_RESOURCES",
    "COOPERATIVE_LAUNCH_TOO_LARGE",
    "INVALID_CLUSTER_SIZE",
    "NOT_SUPPORTED",
    "NOT_PERMITTED",
    "INVALID_IMAGE",
    "NO_BINARY_FOR_GPU",
    "INVALID_SOURCE",
    "SHARED_OBJECT_SYMBOL_NOT_FOUND",
    "NOT_FOUND",
    "INVALID_RESOURCE_CONFIGURATION",
]
# What a graph cannot hold: launch_error at capture and in a library.
UNCAPTURED = [
    f"STREAM_CAPTURE_{name}"
    for name in (
        [
            "UNSUPPORTED",
            "INVALIDATED",
            "MERGE",
            "UNMATCHED",
            "UNJOINED",
            "ISOLATION",
            "IMPLICIT",
            "WRONG_THREAD",
        ]
    )
]


def codes() -> list[str]:
    """Return the name of every CUresult but success, from cuda.h."""
    package = find_spec("nvidia.cu13")
    assert package is not None and package.submodule_search_locations is not None
    header = Path(package.submodule_search_locations[0], "include", "cuda.h")
    lines = [line.strip() for line in header.read_text("utf-8").splitlines()]
    return [
        line.split()[0].removeprefix("CUDA_ERROR_")
        for line in lines
        if line.startswith("CUDA_ERROR_") and "=" in line
    ]


def expected(name: str, during: Step) -> Status | None:
    """Return the status of a code at a step, None for a failure of the machine."""
    if name in RUNNING:
        return RUNNING[name]
    if during in ("allocate", "run"):
        return INFRA
    if name in REFUSED or (name in UNCAPTURED and during in ("capture", "library")):
        return Status.LAUNCH_ERROR
    return INFRA


def found(fault: Fault, owner: bool = False) -> Status | None:
    """Return what kopt says of a fault."""
    try:
        return fault_outcome(fault, "plain", owner).status
    except InfraError:
        return None


@pytest.mark.parametrize("name", codes())
def test_code_of_cuda_is_blamed_on_who_caused_it(name: str) -> None:
    for during in STEPS:
        fault = Fault(during=during, code=f"CUDA_ERROR_{name}", message="said")
        assert found(fault) is expected(name, during), during


def test_codes_that_are_held_against_a_candidate_exist() -> None:
    assert {*RUNNING, *REFUSED, *UNCAPTURED} < set(codes())


def test_fault_tells_what_cuda_said_where_and_what_to_do() -> None:
    fault = Fault(
        during="launch",
        code="CUDA_ERROR_INVALID_CLUSTER_SIZE",
        message="cluster misconfiguration",
        launch=1,
    )
    (diagnostic,) = fault_outcome(fault, "landlock", False).diagnostics
    assert diagnostic.message == (
        "the launch (launch 2 of the plan) ended with CUDA_ERROR_INVALID_CLUSTER_SIZE: "
        "cluster misconfiguration"
    )
    assert diagnostic.hint is not None and "cluster" in diagnostic.hint


@pytest.mark.parametrize("name", RUNNING)
def test_fault_of_a_running_kernel_has_a_hint(name: str) -> None:
    fault = Fault(during="run", code=f"CUDA_ERROR_{name}", message="said")
    assert fault_outcome(fault, None, False).diagnostics[0].hint


def test_scratch_that_does_not_fit_is_the_candidates_doing() -> None:
    fault = Fault(during="allocate", code="CUDA_ERROR_OUT_OF_MEMORY", message="out of memory")
    assert (found(fault, owner=True), found(fault)) == (Status.LAUNCH_ERROR, INFRA)


def test_library_that_cannot_run_here_says_so_in_its_own_words() -> None:
    fault = Fault(during="library", code="ImportError", message="No module named 'flashinfer'")
    outcome = fault_outcome(fault, "plain", False)
    assert outcome.status is Status.LAUNCH_ERROR
    assert outcome.diagnostics[0].message.endswith("ImportError: No module named 'flashinfer'")


def test_memory_belongs_to_a_candidate_whose_scratch_exceeds_the_tensors(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    workload = problem.workload("b8xh64")  # 8 * 64 * 4 * 2 + 64 * 2 bytes

    def side(scratch_bytes: int) -> CandidateSide:
        scratch = Scratch(name="partial", dtype="uint8", shape=(scratch_bytes,))
        plan = LaunchPlan(
            workload=workload.name, axes={}, defines={}, launches=(), scratch=(scratch,)
        )
        return CandidateSide(plan=plan, cubin_path="a.cubin")

    library = LibrarySide(baseline=Baseline(name="b", entry="run", layout="row_major"), pdl=False)
    sides = (side(4224), side(4225), library)
    assert [owns_memory(one, problem, workload) for one in sides] == [False, True, False]


@pytest.mark.parametrize(
    ("where", "first_byte", "place"),
    [("after", 12, "byte 12 behind its end"), ("before", -4, "byte 4 before its start")],
)
def test_changed_guard_is_out_of_bounds_with_buffer_and_place(
    where: Literal["after", "before"], first_byte: int, place: str
) -> None:
    damage = BufferDamage(buffer="out", where=where, first_byte=first_byte, changed_bytes=4)
    outcome = damage_outcome([damage], "plain")
    assert outcome.status is Status.OUT_OF_BOUNDS
    assert "`out`" in outcome.diagnostics[0].message and place in outcome.diagnostics[0].message


def test_changed_input_is_input_mutated_with_its_name() -> None:
    damage = BufferDamage(buffer="weight", where="inside", first_byte=64, changed_bytes=1)
    outcome = damage_outcome([damage], "plain")
    assert outcome.status is Status.INPUT_MUTATED
    assert outcome.diagnostics[0].message == (
        "input `weight` was written: 1 byte changed, the first at offset 64"
    )


def test_write_outside_comes_before_the_input_that_it_hit() -> None:
    hit = BufferDamage(buffer="weight", where="inside", first_byte=0, changed_bytes=8)
    stray = BufferDamage(buffer="out", where="after", first_byte=0, changed_bytes=8)
    outcome = damage_outcome([hit, stray], "plain")
    assert outcome.status is Status.OUT_OF_BOUNDS
    assert ["`out`" in entry.message for entry in outcome.diagnostics] == [True]


def test_execution_that_was_killed_is_a_timeout_with_its_limit() -> None:
    outcome = timeout_outcome(2.5, "bubblewrap")
    assert (outcome.status, outcome.sandbox) == (Status.TIMEOUT, "bubblewrap")
    assert "2.5 s" in outcome.diagnostics[0].message


def test_no_outcome_of_a_fault_is_passed() -> None:
    for name, during in product([*RUNNING, *REFUSED], STEPS):
        fault = Fault(during=during, code=f"CUDA_ERROR_{name}", message="said")
        assert found(fault) is not Status.PASSED


def test_writing_the_outputs_of_another_call_is_out_of_bounds_and_said_so() -> None:
    damage = BufferDamage(buffer="out", where="idle", first_byte=0, changed_bytes=8)
    outcome = damage_outcome([damage], "plain")
    assert outcome.status is Status.OUT_OF_BOUNDS
    assert "`out` of another call" in outcome.diagnostics[0].message
