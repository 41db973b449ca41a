"""Kernels beside gemm_fp8_block_scaled, compiled for sm_90a and checked on sim."""

from collections.abc import Mapping
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

GEMM = load_problems()["gemm_fp8_block_scaled"]
SOURCES = {
    path.name.removesuffix(".sm_90a.cu"): read_candidate(path)
    for path in sorted((GEMM.folder / "unproven").glob("*.cu"))
}
WGMMA, SPLIT = "gemm_fp8_wgmma", "gemm_fp8_split"
COMPILED = [SPLIT, pytest.param(WGMMA, marks=pytest.mark.nightly)]
"""`make test-all` compiles one for all workloads, and runs each where nothing fills a tile; full
checks, ten to twenty seconds each, are left to `make test-nightly`."""
AWAITED = '    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");\n'
ARRIVED = "    if (lane == 0) kopt::mbarrier_arrive(&s.empty[turn.stage]);\n"
IN_LOOP = "wait<1>();\n      add(sums, even, s, first, row);\n      "
"""What the step before the last one is waited for and added by."""


def _check(
    problem: Problem,
    candidate: Candidate,
    settings: Settings,
    level: CheckLevel = "quick",
    tune: Mapping[str, int] | None = None,
) -> CheckResult:
    case = Case(problem, problem.workloads[0], candidate, dict(tune or {}))
    return check_candidate(CheckRequest(case, level, arch="sm_90a"), SimDevice(settings), settings)


def test_many_and_few_rows_have_their_kernels() -> None:
    assert set(SOURCES) == {WGMMA, SPLIT}


@pytest.mark.parametrize("name", COMPILED)
def test_a_kernel_compiles_for_all_that_it_claims_and_spills_nothing(
    name: str, settings: Settings
) -> None:
    case = Case(GEMM, GEMM.workloads[0], SOURCES[name])
    result = compile_candidate(CompileRequest(case, archs=("sm_90a",)), settings)
    assert result.status is Status.PASSED, result.diagnostics
    served = {workload for build in result.builds for workload in build.workloads}
    assert served == {workload.name for workload in case.domain}
    used = [kernel for build in result.builds for kernel in build.kernels]
    assert all(one.spill_store_bytes == one.spill_load_bytes == 0 for one in used)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SOURCES)
def test_a_kernel_passes_the_full_check(name: str, settings: Settings) -> None:
    result = _check(GEMM, SOURCES[name], settings, "full")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    assert not result.unexecuted_lines


@pytest.mark.parametrize(
    ("name", "axes", "tune"),
    [
        (WGMMA, {"M": 141, "N": 200, "K": 768}, {}),
        pytest.param(
            WGMMA, {"M": 141, "N": 200, "K": 768}, {"COLUMNS": 64}, marks=pytest.mark.nightly
        ),
        pytest.param(
            SPLIT,
            {"M": 7, "N": 130, "K": 1152},
            {"BLOCKS": 512, "GROUPS": 2},
            marks=pytest.mark.nightly,
        ),
        pytest.param(SPLIT, {"M": 33, "N": 72, "K": 128}, {}, marks=pytest.mark.nightly),
        (SPLIT, {"M": 100, "N": 72, "K": 1152}, {}),
        pytest.param(SPLIT, {"M": 5, "N": 64, "K": 6144}, {}, marks=pytest.mark.nightly),
    ],
)
def test_rows_columns_and_blocks_that_fill_no_tile_are_right(
    name: str, axes: dict[str, int], tune: dict[str, int], tmp_path: Path, settings: Settings
) -> None:
    result = _check(with_one_workload(GEMM, axes, tmp_path), SOURCES[name], settings, tune=tune)
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


def test_blocks_that_take_tiles_of_several_bands_one_after_the_other_are_right(
    tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 300, "N": 392, "K": 256}, tmp_path)
    source = _with(SOURCES[WGMMA].source, "grid: min(SM_COUNT,", "grid: min(2,")
    source = _with(source, "BAND: [8, 16, 4]", "BAND: [2]")
    result = _check(problem, Candidate(source), settings)
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (WGMMA, f"{IN_LOOP}first", f"{IN_LOOP.replace('<1>', '<2>')}first"),
        pytest.param(
            WGMMA,
            "add(sums, odd, s, second, row);\n    }\n    if",
            "add(sums, odd, s, first, row);\n    }\n    if",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            WGMMA,
            "descriptor(weight + k), k > 0)",
            "descriptor(weight + k), 1)",
            marks=pytest.mark.nightly,
        ),
        pytest.param(WGMMA, "  kopt::fence_proxy_async();\n", "", marks=pytest.mark.nightly),
        pytest.param(WGMMA, "? first : second", "? second : first", marks=pytest.mark.nightly),
        (WGMMA, "      wait<0>();\n      add(sums, odd", "      add(sums, odd"),
        pytest.param(
            WGMMA, "full, tile.row, step)", "full, tile.row, step ^ 1)", marks=pytest.mark.nightly
        ),
        pytest.param(
            WGMMA,
            "(tile.column / STEP) * steps",
            "(tile.column / COLUMNS / 2) * steps",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            SPLIT,
            "descriptor(x + part * PART * STEP + k), k > 0)",
            "descriptor(x + k), 1)",
            marks=pytest.mark.nightly,
        ),
        pytest.param(SPLIT, "        scale.y *= of_weight;\n", "", marks=pytest.mark.nightly),
        pytest.param(
            SPLIT,
            "weight_scale + static_cast<size_t>(block) * steps + first",
            "weight_scale",
            marks=pytest.mark.nightly,
        ),
        pytest.param(SPLIT, "  cluster.sync();\n  if", "  if", marks=pytest.mark.nightly),
        (SPLIT, "  cluster.sync();  // no block", "  // no block"),
        pytest.param(SPLIT, AWAITED, "", marks=pytest.mark.nightly),
    ],
)
def test_one_word_less_is_found(
    name: str, right: str, wrong: str, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 64, "N": 264, "K": 768}, tmp_path)
    source = _with(SOURCES[name].source, right, wrong)
    assert _check(problem, Candidate(source), settings).status is not Status.PASSED


@pytest.mark.nightly  # nine seconds; gemm_bf16's kernels have such a case in every run
def test_a_stage_that_is_not_handed_back_is_found(tmp_path: Path, settings: Settings) -> None:
    problem = with_one_workload(GEMM, {"M": 5, "N": 64, "K": 6144}, tmp_path)
    source = _with(SOURCES[SPLIT].source, ARRIVED, "")
    assert _check(problem, Candidate(source), settings).status is not Status.PASSED


def _with(source: str, right: str, wrong: str) -> str:
    assert source.count(right) == 1
    return source.replace(right, wrong)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("fk") / "home", shared_caches), jobs=2
    )
