"""All kernels in one run."""

from pathlib import Path

import pytest

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchAllResult
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.bench.bench_all import BenchAllRequest, bench_all
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest
from support.bench_cases import CANDIDATE, OTHER, ROW_MAJOR, bench_problem
from support.scripted_timer import QUIET, LibraryScript, Script, ScriptedTimer

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def two_workloads(tmp_path: Path) -> Problem:
    return bench_problem(tmp_path / "problem", (ROW_MAJOR, OTHER), ((8, 64), (16, 64)))


def _timer() -> ScriptedTimer:
    libraries = {
        ("lib", False): LibraryScript(us=5.0),
        ("lib", True): LibraryScript(us=4.5),
        ("other", False): LibraryScript(us=4.8),
    }
    return ScriptedTimer(Script(noise=QUIET, libraries=libraries))


def test_reference_and_winner_stand_against_every_baseline(
    two_workloads: Problem, settings: Settings
) -> None:
    winner = two_workloads.folder / "winners" / "b16xh64.sm_90a.cu"
    winner.parent.mkdir()
    winner.write_text(CANDIDATE.source)
    lines: list[str] = []
    result = bench_all(BenchAllRequest((two_workloads,), progress=lines.append), _timer(), settings)
    assert [(row.kernel, row.source) for row in result.rows] == [
        ("synthetic_b8xh64", "reference"),
        ("synthetic_b16xh64", "reference"),
        ("synthetic_b16xh64", "winner"),
    ]
    assert [len(row.result.comparisons) for row in result.rows if row.result] == [3, 3, 4]
    assert (lines[2], result.failed) == ("synthetic_b16xh64, winner (3 of 3)", ())
    assert BenchAllResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_winner_that_was_promoted_here_has_a_row(
    two_workloads: Problem, settings: Settings
) -> None:
    winner = settings.winners / two_workloads.name / "b8xh64.sm_90a.cu"
    winner.parent.mkdir(parents=True)
    winner.write_text(CANDIDATE.source)
    result = bench_all(BenchAllRequest((two_workloads,)), _timer(), settings)
    assert [row.file for row in result.rows if row.source == "winner"] == [str(winner)]


def test_a_winner_for_another_architecture_has_no_row(
    two_workloads: Problem, settings: Settings
) -> None:
    winner = two_workloads.folder / "winners" / "b8xh64.sm_100a.cu"
    winner.parent.mkdir()
    winner.write_text(CANDIDATE.source)
    result = bench_all(BenchAllRequest((two_workloads,)), _timer(), settings)
    assert {row.source for row in result.rows} == {"reference"}


def test_a_row_that_fails_does_not_stop_the_others(
    two_workloads: Problem, settings: Settings
) -> None:
    class Failing(ScriptedTimer):
        def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
            if request.program.plan.workload == "b8xh64":
                raise InfraError("the worker died")
            return super().execute(request)

    timer = Failing(_timer().script)
    result = bench_all(BenchAllRequest((two_workloads,)), timer, settings)
    assert [(row.error, row.result is None) for row in result.rows] == [
        ("the worker died", True),
        (None, False),
    ]
    assert [row.kernel for row in result.failed] == ["synthetic_b8xh64"]


def test_a_missing_source_is_an_error_of_its_row(
    two_workloads: Problem, settings: Settings
) -> None:
    (two_workloads.folder / "reference.cu").unlink()
    result = bench_all(BenchAllRequest((two_workloads,)), _timer(), settings)
    assert ["reference.cu" in (row.error or "") for row in result.rows] == [True, True]


def test_rows_carry_no_single_pairs(two_workloads: Problem, settings: Settings) -> None:
    result = bench_all(BenchAllRequest((two_workloads,)), _timer(), settings)
    for row in result.rows:
        assert row.result is not None
        assert row.result.status is Status.PASSED
        assert {comparison.log_ratios for comparison in row.result.comparisons} == {()}
