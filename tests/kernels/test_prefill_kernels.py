"""The kernels beside attention_prefill, compiled for sm_90a and checked on sim."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_job import Compiler
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.sim.device import SimDevice
from support.other_shapes import with_one_workload
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # nvcc, and tiles of tensor cores on the simulator

PREFILL = load_problems()["attention_prefill"]
WGMMA = read_candidate(PREFILL.folder / "unproven" / "attention_wgmma.sm_90a.cu")
REFERENCE = read_candidate(PREFILL.folder / "reference.cu")
FULL = [pytest.param(one, id=one.name, marks=pytest.mark.nightly) for one in (REFERENCE, WGMMA)]
"""A minute each, of which the quick check of a small shape, and mistakes, take a few seconds."""

SEVERAL = {"I": 4, "H": 1, "G": 2, "N": 450}
"""Three sequences, one of which has several tiles, and none of which ends with one."""


def _check(problem: Problem, source: str, settings: Settings, level: CheckLevel) -> CheckResult:
    case = Case(problem, problem.workloads[0], Candidate(source))
    compiler: Compiler = "nvrtc" if level == "quick" else "nvcc"  # half the time
    request = CheckRequest(case, level, arch="sm_90a", compiler=compiler)
    return check_candidate(request, SimDevice(settings), settings)


def _on_blocks(source: str, blocks: int) -> str:
    """Return the kernel with so many blocks at most, whatever the GPU has."""
    return _with(source, "min(H * G * (N // 128 + B), SM_COUNT", f"min({blocks}, SM_COUNT")


def _with(source: str, right: str, wrong: str) -> str:
    assert source.count(right) == 1
    return source.replace(right, wrong)


def test_the_kernel_compiles_for_all_that_it_claims_and_spills_nothing(settings: Settings) -> None:
    case = Case(PREFILL, PREFILL.workloads[0], WGMMA)
    result = compile_candidate(CompileRequest(case, archs=("sm_90a",)), settings)
    assert result.status is Status.PASSED, result.diagnostics
    served = {workload for build in result.builds for workload in build.workloads}
    assert served == {workload.name for workload in PREFILL.workloads}
    used = [kernel for build in result.builds for kernel in build.kernels]
    assert all(one.spill_store_bytes == one.spill_load_bytes == 0 for one in used)


@pytest.mark.parametrize("candidate", FULL)
def test_a_kernel_passes_the_full_check(candidate: Candidate, settings: Settings) -> None:
    result = _check(PREFILL, candidate.source, settings, "full")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    assert not result.unexecuted_lines


def test_the_reference_is_right_at_sequences_of_different_lengths(settings: Settings) -> None:
    result = _check(PREFILL, REFERENCE.source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize("blocks", [3, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("turns", [1, pytest.param(0, marks=pytest.mark.nightly)])
def test_blocks_that_take_tiles_of_several_sequences_one_after_the_other_are_right(
    turns: int, blocks: int, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(PREFILL, SEVERAL, tmp_path)
    source = _with(_on_blocks(WGMMA.source, blocks), "TAKE_TURNS: [0, 1]", f"TAKE_TURNS: [{turns}]")
    result = _check(problem, source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    assert not result.unexecuted_lines


@pytest.mark.parametrize(
    "axes",
    [
        {"I": 8, "H": 1, "G": 1, "N": 200},
        pytest.param({"I": 2, "H": 3, "G": 1, "N": 129}, marks=pytest.mark.nightly),
        pytest.param({"I": 2, "H": 1, "G": 5, "N": 1}, marks=pytest.mark.nightly),
        pytest.param({"I": 2, "H": 1, "G": 1, "N": 384}, marks=pytest.mark.nightly),
    ],
)
def test_other_shapes_that_the_kernel_claims_are_right(
    axes: dict[str, int], tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(PREFILL, axes, tmp_path)
    result = _check(problem, WGMMA.source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


K_EMPTY, V_EMPTY = (
    f"      kopt::mbarrier_wait_parity(&s.{name}_empty[turn.stage], turn.parity);\n"
    for name in "kv"
)


IN_CI = (
    ("i % 2 > row + i", "i % 2 >= row + i"),
    ("sums[i] *= i % 4 / 2 ? shrink.y : shrink.x;", "sums[i] *= shrink.x;"),
    ("wait_for<1>(logits)", "wait_for<2>(logits)"),
    (K_EMPTY, ""),
    ("row < count", "row < 16"),
    ("  if (consumer == 1) give_turn(consumer);\n", ""),
)
NIGHTLY = (
    ("      weight[r] *= shrink[r];\n", ""),
    ("      wait_for<0>(sums);\n      if", "      if"),
    (V_EMPTY, ""),
    ("    kopt::mbarrier_wait_parity(&s.q_empty, q_parity);\n", ""),
    ("tiles_of(sequence) > level && before", "before"),
    ("gridDim.x - 1 - blockIdx.x : blockIdx.x", "gridDim.x - 2 - blockIdx.x : blockIdx.x"),
    ("  kopt::griddepcontrol_wait();\n", ""),
    ("      wait_for_turn(consumer);\n      fence_registers();\n", "wait_for_turn(consumer);"),
    ("    all += __shfl_xor_sync(~0u, all, 2);\n", ""),
    ("uint64_t{HALF} >> 4", "1ull"),
    ("s.q + consumer * 64 * 128", "s.q"),
    ("to + HALF, map, full, column + 64", "to + HALF, map, full, column"),
    ("if (n < tile.level) {", "if (n <= tile.level) {"),
    ("one * SCALE - off", "one * SCALE"),
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [*IN_CI, *(pytest.param(*one, marks=pytest.mark.nightly) for one in NIGHTLY)],
)
def test_one_word_less_is_found(right: str, wrong: str, tmp_path: Path, settings: Settings) -> None:
    problem = with_one_workload(PREFILL, SEVERAL, tmp_path)
    taking_turns = _with(WGMMA.source, "TAKE_TURNS: [0, 1]", "TAKE_TURNS: [1]")
    source = _with(_on_blocks(taking_turns, 2), right, wrong)
    result = _check(problem, source, settings, "quick")
    assert result.status not in (Status.PASSED, Status.COMPILE_ERROR), result.diagnostics


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("pk") / "home", shared_caches), jobs=2
    )
