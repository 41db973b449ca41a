"""The unproven sm_100a kernels on the simulator: shapes and tune values that no workload has."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import shipped_kernels
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.sim.device import SimDevice
from support.other_shapes import with_one_workload
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # every unproven kernel in full

PROBLEMS = load_problems()
CASES: tuple[tuple[str, dict[str, int], dict[str, int]], ...] = (
    ("add_rmsnorm_fp4quant", {"B": 3, "H": 1024}, {}),
    ("add_rmsnorm_fp4quant_sf128x4", {"B": 3, "H": 1024}, {"COLUMNS": 8}),
    ("add_rmsnorm_fp4quant", {"B": 2, "H": 2048}, {"COLUMNS": 8, "WITH_SCALE_WORDS": 0}),
    ("add_rmsnorm_fp4quant_sf128x4", {"B": 2, "H": 2048}, {"STEPS": 2, "WITH_SCALE_WORDS": 0}),
    ("nvfp4_quantize", {"M": 168, "K": 1024}, {}),
    ("nvfp4_quantize", {"M": 40, "K": 1024}, {"ROWS": 1}),
    ("nvfp4_quantize_linear", {"M": 40, "K": 1024}, {}),
    ("silu_mul_fp4quant", {"B": 3, "M": 40, "K": 1024}, {"MASK_FIRST": 0}),
    (
        "silu_mul_fp4quant_linear",
        {"B": 3, "M": 40, "K": 1024},
        {"ROWS": 1, "WITH_PAIRED_RECIPROCAL": 0},
    ),
)


NIGHTLY = (1, 2, 5, 8)
"""The second and third of kernels that have another case: other tune values of the same code."""


@pytest.mark.parametrize(
    ("name", "axes", "tune"),
    [
        pytest.param(*one, marks=[pytest.mark.nightly] if at in NIGHTLY else [])
        for at, one in enumerate(CASES)
    ],
)
def test_rows_that_fill_no_tile_and_other_tune_values_are_right(
    name: str, axes: dict[str, int], tune: dict[str, int], tmp_path: Path, settings: Settings
) -> None:
    problem = with_one_workload(PROBLEMS[name], axes, tmp_path)
    shipped = shipped_kernels(PROBLEMS[name], PROBLEMS[name].workloads[0])
    (source,) = (one.source for one in shipped if one.standing == "unproven")
    request = CheckRequest(
        case=Case(problem, problem.workloads[0], read_candidate(source), tune),
        level="full",
        arch="sm_100a",
    )
    result = check_candidate(request, SimDevice(settings), settings)
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("up") / "home", shared_caches), jobs=2
    )
