"""The kernel beside attention_decode, compiled for sm_90a and checked on sim."""

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
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.sim.device import SimDevice
from support.other_shapes import with_one_workload
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # nvcc, and tiles of tensor cores on the simulator

ATTENTION = load_problems()["attention_decode"]
RANGES = read_candidate(ATTENTION.folder / "unproven" / "attention_ranges.sm_90a.cu")
REFERENCE = read_candidate(ATTENTION.folder / "reference.cu")
OTHER_PAGES = 1 + RANGES.source[: RANGES.source.index("pages[place / each]")].count("\n")
"""The line that finds a page beyond the first of a range; the problem's small workloads give each
block one, those of MANY several."""

MANY = {"B": 6, "H": 2, "G": 3, "N": 24, "P": 32}
"""Sequences of which a block of few meets several, with several tiles a page."""


def _check(problem: Problem, source: str, settings: Settings, level: CheckLevel) -> CheckResult:
    case = Case(problem, problem.workloads[0], Candidate(source))
    request = CheckRequest(case, level, arch="sm_90a")
    return check_candidate(request, SimDevice(settings), settings)


def _on_blocks(source: str, blocks: int) -> str:
    """Return the kernel with ranges for so many blocks, whatever the GPU has."""
    assert source.count("ceil_div(SM_COUNT * BLOCKS, H)") == 4
    return source.replace("ceil_div(SM_COUNT * BLOCKS, H)", str(blocks))


def test_the_kernel_compiles_for_all_that_it_claims_and_spills_nothing(settings: Settings) -> None:
    case = Case(ATTENTION, ATTENTION.workloads[0], RANGES)
    result = compile_candidate(CompileRequest(case, archs=("sm_90a",)), settings)
    assert result.status is Status.PASSED, result.diagnostics
    served = {workload for build in result.builds for workload in build.workloads}
    assert served == {workload.name for workload in ATTENTION.workloads}
    used = [kernel for build in result.builds for kernel in build.kernels]
    assert all(one.spill_store_bytes == one.spill_load_bytes == 0 for one in used)


@pytest.mark.parametrize("candidate", [REFERENCE, RANGES], ids=lambda one: one.name)
def test_a_kernel_passes_the_full_check(candidate: Candidate, settings: Settings) -> None:
    result = _check(ATTENTION, candidate.source, settings, "full")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    # A shape that the check draws may have a range of several pages, or none.
    assert set(result.unexecuted_lines) <= ({OTHER_PAGES} if candidate is RANGES else set())


@pytest.mark.parametrize("blocks", [pytest.param(1, marks=pytest.mark.nightly), 3, 24])
def test_ranges_that_hold_many_sequences_or_a_piece_of_one_are_right(
    blocks: int, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(ATTENTION, MANY, tmp_path)
    result = _check(problem, _on_blocks(RANGES.source, blocks), settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    assert (OTHER_PAGES in result.unexecuted_lines) is (blocks == 24)


@pytest.mark.parametrize(
    "axes",
    [
        {"B": 1, "H": 1, "G": 8, "N": 1, "P": 16},
        pytest.param({"B": 1, "H": 8, "G": 4, "N": 64, "P": 16}, marks=pytest.mark.nightly),
        {"B": 5, "H": 3, "G": 5, "N": 15, "P": 48},
    ],
)
def test_other_shapes_that_the_kernel_claims_are_right(
    axes: dict[str, int], tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(ATTENTION, axes, tmp_path)
    result = _check(problem, RANGES.source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("8 < left ? logit * scale", "8 < TILE ? logit * scale"),
        pytest.param("place % segment.each * TILE", "0", marks=pytest.mark.nightly),
        pytest.param("min(end - begin, all)", "end - begin", marks=pytest.mark.nightly),
        ("  sums.weight *= shrink;\n", ""),
        pytest.param(
            "start ? 0 : begin + all > end ? 1",
            "start ? 1 : begin + all > end ? 0",
            marks=pytest.mark.nightly,
        ),
        ("((tile + 1) * n - 1) / tiles", "tile * n / tiles"),
        ("  __syncthreads();\n  for", "  for"),
        pytest.param("  __syncthreads();\n}", "}", marks=pytest.mark.nightly),
        ("  kopt::griddepcontrol_wait();\n  for", "  for"),
        pytest.param("  kopt::griddepcontrol_wait();\n  if", "  if", marks=pytest.mark.nightly),
        pytest.param(
            "  __syncthreads();\n  const float3", "  const float3", marks=pytest.mark.nightly
        ),
        pytest.param("first + warp; block", "first; block", marks=pytest.mark.nightly),
    ],
)
def test_one_word_less_is_found(right: str, wrong: str, tmp_path: Path, settings: Settings) -> None:
    problem = with_one_workload(ATTENTION, MANY, tmp_path)
    source = _on_blocks(RANGES.source, 5)
    assert source.count(right) == 1
    result = _check(problem, source.replace(right, wrong), settings, "quick")
    assert result.status not in (Status.PASSED, Status.COMPILE_ERROR), result.diagnostics


@pytest.mark.parametrize("wrong", [None, "    weight = weight +"])
def test_a_sequence_of_more_parts_than_warps_is_merged_rightly_and_a_mistake_found(
    wrong: str | None, tmp_path: Path, settings: Settings
) -> None:
    long = {"B": 1, "H": 2, "G": 2, "N": 24, "P": 32}
    source, right = _on_blocks(RANGES.source, 20), "    weight = weight * shrink +"
    assert source.count(right) == 1
    problem = with_one_workload(ATTENTION, long, tmp_path)
    result = _check(problem, source.replace(right, wrong or right), settings, "quick")
    assert (result.status is Status.PASSED) is (wrong is None), result.diagnostics


def test_values_behind_the_last_token_that_are_loaded_are_found(
    tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(ATTENTION, MANY, tmp_path)
    guard = "place * TILE + token < segment.tokens;"
    assert RANGES.source.count(guard) == 1
    source = RANGES.source.replace(guard, "true;")
    result = _check(problem, source, settings, "full")
    assert result.mismatch is not None
    assert result.mismatch.gate == "finite"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("ak") / "home", shared_caches), jobs=2
    )
