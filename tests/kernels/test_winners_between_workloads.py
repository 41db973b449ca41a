"""The shipped winners on the simulator at row counts that no workload has.

`where` claims them; promotion checks the workloads alone. 20 and 520 fill clusters of 4 and 8
rows, 127 and 521 do not.
"""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.domain import unserved_variants
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
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


def distinct_winners(problem: Problem) -> dict[str, ShippedKernel]:
    """Return the winners of `problem` by their text: workloads may share one."""
    kernels = (one for entry in problem.workloads for one in shipped_kernels(problem, entry))
    return {one.source.read_text("utf-8"): one for one in kernels if one.standing == "winner"}


WINNERS = [
    pytest.param(problem, one, id=f"{problem.name}-{one.source.stem}")
    for problem in PROBLEMS.values()
    for one in distinct_winners(problem).values()
]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("shipped", "winner"), WINNERS)
def test_winner_is_right_at_other_row_counts(
    shipped: Problem, winner: ShippedKernel, rows: int, tmp_path: Path, settings: Settings
) -> None:
    own = shipped.workload(winner.evidence.name.split(".")[0]).axes
    axes = {name: own[name] for name, expression in shipped.axes.items() if expression is None}
    problem = with_one_workload(shipped, axes | {shipped.row_axis or "": rows}, tmp_path)
    request = CheckRequest(
        case=Case(problem, problem.workloads[0], read_candidate(winner.source)),
        level="quick",
        arch=winner.arch,
    )
    result = check_candidate(request, SimDevice(settings), settings)
    assert result.status is Status.PASSED, (result.mismatch, result.diagnostics)


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
