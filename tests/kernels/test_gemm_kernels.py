"""The kernels beside gemm_bf16, compiled for sm_90a and checked on sim."""

import re
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

GEMM = load_problems()["gemm_bf16"]
SOURCES = {
    path.name.removesuffix(".sm_90a.cu"): read_candidate(path)
    for path in sorted((GEMM.folder / "unproven").glob("*.cu"))
}
MMA, WGMMA, SPLIT = "gemm_mma", "gemm_wgmma", "gemm_split"
FULL = [MMA, *(pytest.param(name, marks=pytest.mark.nightly) for name in (WGMMA, SPLIT))]
"""`make test-all` compiles one for all workloads and checks it in full, which takes twenty seconds,
and runs every one where nothing fills a tile; `make test-nightly` does the others."""
DEPTH = 520
"""At which every stage of a ring is filled again, with that of `_with_small_ring`."""


def _check(problem: Problem, source: str, settings: Settings, level: CheckLevel) -> CheckResult:
    case = Case(problem, problem.workloads[0], Candidate(source))
    compiler: Compiler = "nvrtc" if level == "quick" else "nvcc"  # half the time
    request = CheckRequest(case, level, arch="sm_90a", compiler=compiler)
    return check_candidate(request, SimDevice(settings), settings)


def test_each_way_to_multiply_has_its_kernel() -> None:
    assert set(SOURCES) == {MMA, WGMMA, SPLIT}


@pytest.mark.parametrize("name", FULL)
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


@pytest.mark.parametrize("name", FULL)
def test_a_kernel_passes_the_full_check(name: str, settings: Settings) -> None:
    result = _check(GEMM, SOURCES[name].source, settings, "full")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)
    assert not result.unexecuted_lines


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        (MMA, {"M": 200, "N": 301, "K": 72}),
        (WGMMA, {"M": 300, "N": 520, "K": 200}),
        (SPLIT, {"M": 9, "N": 37, "K": 1000}),
        pytest.param(SPLIT, {"M": 64, "N": 130, "K": 1032}, marks=pytest.mark.nightly),
        pytest.param(SPLIT, {"M": 65, "N": 48, "K": 8}, marks=pytest.mark.nightly),
    ],
)
def test_rows_columns_and_depths_that_fill_no_tile_are_right(
    name: str, axes: dict[str, int], tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, axes, tmp_path)
    result = _check(problem, _with_small_ring(SOURCES[name].source), settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(
    "columns", [112, *(pytest.param(n, marks=pytest.mark.nightly) for n in (16, 224))]
)
def test_a_block_may_own_any_number_of_columns(
    columns: int, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 7, "N": 240, "K": 1032}, tmp_path)
    source = _with_small_ring(SOURCES[SPLIT].source)
    source = _with(source, "ROWS: 8, COLUMNS: 32", f"ROWS: 8, COLUMNS: {columns}")
    result = _check(problem, source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(
    ("columns", "right", "wrong"),
    [
        (32, "else if (row / ROWS == column / COLUMNS)", "else"),
        pytest.param(32, "i * COLUMNS * CHUNK * 2", "0", marks=pytest.mark.nightly),
        pytest.param(32, "p % PACK * ROWS", "0", marks=pytest.mark.nightly),
        (112, "min(group * 64, COLUMNS - 64)", "group * 64"),
    ],
)
def test_one_word_less_where_columns_fill_no_tile_is_found(
    columns: int, right: str, wrong: str, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 8, "N": 128, "K": DEPTH}, tmp_path)
    source = _with(SOURCES[SPLIT].source, right, wrong)
    source = _with(source, "ROWS: 8, COLUMNS: 32", f"ROWS: 8, COLUMNS: {columns}")
    assert _check(problem, source, settings, "quick").status is not Status.PASSED


def test_blocks_that_take_tiles_of_several_bands_one_after_the_other_are_right(
    tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 300, "N": 520, "K": 320}, tmp_path)
    source = _with(SOURCES[WGMMA].source, "grid: min(SM_COUNT,", "grid: min(2,")
    source = _with(source, "BAND: [8, 16, 4]", "BAND: [2]")
    result = _check(problem, source, settings, "quick")
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (MMA, '"n"(STAGES - 2)', '"n"(STAGES - 1)'),
        pytest.param(MMA, "    __syncthreads();\n", "", marks=pytest.mark.nightly),
        pytest.param(MMA, "k + lane / 8 % 2)", "k + lane / 16)", marks=pytest.mark.nightly),
        (WGMMA, "mbarrier_arrive(&s.empty[before]);\n      before", "before"),
        pytest.param(
            WGMMA,
            "if (step > 0 && is_first) kopt::mbarrier_arrive(&s.empty[before]);",
            "if (is_first) kopt::mbarrier_arrive(&s.empty[turn.stage]);",
            marks=pytest.mark.nightly,
        ),
        pytest.param(WGMMA, "    kopt::fence_proxy_async();\n", "", marks=pytest.mark.nightly),
        (WGMMA, "step > 0 || k > 0", "1"),
        pytest.param(
            SPLIT,
            "    kopt::mbarrier_wait_parity(&s.empty[turn.stage], turn.parity);\n",
            "",
            marks=pytest.mark.nightly,
        ),
        (SPLIT, '  asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");\n', ""),
        pytest.param(SPLIT, "    cluster.sync();\n  } else", "  } else", marks=pytest.mark.nightly),
        pytest.param(
            SPLIT,
            "  if (RANKS > 1) cluster.sync();  // no block ends while others read its sums\n",
            "",
            marks=pytest.mark.nightly,
        ),
        (SPLIT, "  kopt::griddepcontrol_wait();\n  for", "  for"),
        pytest.param(
            SPLIT,
            "own + column] = d[part][i];",
            "own + column] = float(__nv_bfloat16(d[part][i]));",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_one_word_less_is_found(
    name: str, right: str, wrong: str, tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(GEMM, {"M": 64, "N": 128, "K": DEPTH}, tmp_path)
    source = _with(_with_small_ring(SOURCES[name].source), right, wrong)
    assert _check(problem, source, settings, "quick").status is not Status.PASSED


def _with_small_ring(source: str) -> str:
    """Return the kernel for few rows with rings of 64 KB; other kernels as they are."""
    source = re.sub(r"RING_KB: \d+", "RING_KB: 64", source)
    return source.replace("RING_KB: [208, 110]", "RING_KB: [64]")


def _with(source: str, right: str, wrong: str) -> str:
    assert source.count(right) == 1
    return source.replace(right, wrong)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("gk") / "home", shared_caches), jobs=2
    )
