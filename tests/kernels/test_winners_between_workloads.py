"""The shipped winners on the simulator at row counts that no workload has.

`where` claims them. 20 and 520 fill clusters of 4 and 8 rows, 127 and 521 do not. A winner that
claims fewer rows is run at those that it does, and at the first and last of them.
"""

from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.domain import claims, unserved_variants
from kopt.kernels.header_parser import parse_header
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem, make_workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import ShippedKernel, shipped_kernels
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.sim.device import SimDevice
from support.other_shapes import with_one_workload
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # every shipped kernel at shapes of its own

PROBLEMS = load_problems()
ROWS = (1, 20, 127, 520, 521)
MOST_ROWS = 1024
"""Claims are looked at up to here."""
NIGHTLY_ROWS = (17, 20, 512, 520)
"""Where a winner is the build that it is at 127 or 521 rows, which fill no tile."""
OWN_BUILDS = (("fused_add_rmsnorm_fp8_block_quant", 520),)
NO_OWN_BUILDS = (("fused_add_rmsnorm_fp8_block_quant", 127), ("merge_state", 1))


def distinct_winners(problem: Problem) -> dict[str, ShippedKernel]:
    """Return the winners of `problem` by their text: workloads may share one."""
    kernels = (one for entry in problem.workloads for one in shipped_kernels(problem, entry))
    return {one.source.read_text("utf-8"): one for one in kernels if one.standing == "winner"}


WINNERS = [
    pytest.param(problem, one, id=f"{problem.name}-{one.source.stem}")
    for problem in PROBLEMS.values()
    for one in distinct_winners(problem).values()
]


def _is_nightly(shipped: Problem, rows: int) -> bool:
    at = (shipped.name, rows)
    return at in NO_OWN_BUILDS or (rows in NIGHTLY_ROWS and at not in OWN_BUILDS)


def _variable_axes(shipped: Problem, winner: ShippedKernel, rows: int) -> dict[str, int]:
    own = shipped.workload(winner.evidence.name.split(".")[0]).axes
    return {name: own[name] for name in shipped.variable_axes} | {shipped.row_axis or "": rows}


def rows_of(shipped: Problem, winner: ShippedKernel) -> tuple[int, ...]:
    """Return the row counts that a winner is run at, all of which it claims."""
    header = parse_header(read_candidate(winner.source), shipped).header
    assert header is not None

    def is_claimed(rows: int) -> bool:
        shape = make_workload(shipped, _variable_axes(shipped, winner, rows))
        return claims(header, shipped, shape.axes)

    counts = range(1, MOST_ROWS + 1)
    ends = {next(filter(is_claimed, counts)), next(filter(is_claimed, reversed(counts)))}
    return tuple(sorted((ends - {1, MOST_ROWS}) | set(filter(is_claimed, ROWS))))


def _at_rows(shipped: Problem, winner: ShippedKernel, rows: int, folder: Path) -> Case:
    problem = with_one_workload(shipped, _variable_axes(shipped, winner, rows), folder)
    return Case(problem, problem.workloads[0], read_candidate(winner.source))


AT_ROWS = [
    pytest.param(
        *(problem, one, rows),
        id=f"{problem.name}-{one.source.stem}-{rows}",
        marks=[pytest.mark.nightly] if _is_nightly(problem, rows) else [],
    )
    for problem in PROBLEMS.values()
    for one in distinct_winners(problem).values()
    for rows in rows_of(problem, one)
]


@pytest.mark.parametrize(("shipped", "winner", "rows"), AT_ROWS)
def test_winner_is_right_at_other_row_counts(
    shipped: Problem, winner: ShippedKernel, rows: int, tmp_path: Path, settings: Settings
) -> None:
    case = _at_rows(shipped, winner, rows, tmp_path)
    request = CheckRequest(case=case, level="quick", arch=winner.arch)
    result = check_candidate(request, SimDevice(settings), settings)
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


@pytest.mark.parametrize(("shipped", "winner"), WINNERS)
def test_no_build_of_a_winner_is_left_to_the_nightly_tests(
    shipped: Problem, winner: ShippedKernel, tmp_path: Path
) -> None:
    builds: dict[int, str] = {}
    for rows in rows_of(shipped, winner):
        (tmp_path / str(rows)).mkdir()
        case = _at_rows(shipped, winner, rows, tmp_path / str(rows))
        plan = resolve_plan(case, gpu_for_arch(winner.arch)).plan
        assert plan is not None
        builds[rows] = str(sorted(plan.defines.items()))
    kept = {text for rows, text in builds.items() if not _is_nightly(shipped, rows)}
    assert kept == set(builds.values())


@pytest.mark.parametrize(("shipped", "winner"), WINNERS)
def test_every_variant_of_a_winner_serves_a_workload(
    shipped: Problem, winner: ShippedKernel
) -> None:
    header = parse_header(read_candidate(winner.source), shipped).header
    assert header is not None
    assert unserved_variants(header, shipped) == ()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this module."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("wi") / "home", shared_caches), jobs=2
    )
