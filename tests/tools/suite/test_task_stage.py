"""One task through the real stages: right, wrong, and on a GPU's twin timed over its baselines."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.status import Provenance, Status
from kopt.tools.sim.device import SimDevice
from kopt.tools.suite.kernel_choice import FindRun, KernelChoice, RunWinner
from kopt.tools.suite.speeds import task_speed
from kopt.tools.suite.suite_file import SuiteTask
from kopt.tools.suite.task_result import SearchCost, SuiteTaskResult
from kopt.tools.suite.task_stage import SuiteSite, prepare_task, run_task
from support.sim_timer import SimTimer
from support.small_suites import WRONG_BODY, write_task
from support.tiny_problem import BODY, HEADER

pytestmark = pytest.mark.slow  # full checks of small problems, on the simulator and on a GPU's twin

WIDE = HEADER.replace("[128, 256]", "[256, 128]") + BODY
TASK = SuiteTask(name="one_rows", group="level1")


def _no_run(*_: object) -> tuple[RunWinner, ...]:
    return ()


def _on_sim(
    settings: Settings, folder: Path, asked: str | None = None, find: FindRun = _no_run
) -> SuiteTaskResult:
    choice = KernelChoice(asked, "sm_90a", settings, find)
    site = SuiteSite(SimDevice(settings), None, "sm_90a", "full", choice, settings)
    return run_task(prepare_task(TASK, folder, site), site)


def _wide_blocks_are_faster(plan: LaunchPlan) -> float:
    return 6.0 if plan.launches[0].block[0] == 128 else 4.0


def test_a_right_kernel_is_valid_and_its_time_estimated(settings: Settings, tmp_path: Path) -> None:
    result = _on_sim(settings, write_task(tmp_path, "one_rows"))
    assert (result.is_valid, result.status, result.why) == (True, Status.PASSED, "")
    assert [(one.level, one.workloads) for one in result.checks] == [("full", ("b8xh64",))]
    (time,) = result.times
    assert time.latency is not None
    assert time.latency.provenance is Provenance.ESTIMATED
    assert (time.comparisons, result.gpu) == ((), None)
    assert time.floor_us > 0.0
    assert task_speed(result, "reference") is None


def test_a_wrong_kernel_is_a_result(settings: Settings, tmp_path: Path) -> None:
    result = _on_sim(settings, write_task(tmp_path, "one_rows", WRONG_BODY))
    assert (result.is_valid, result.status, result.times) == (False, Status.INCORRECT, ())
    assert "'out'" in result.why


def test_an_oracle_that_fails_is_a_fault_and_not_the_kernels(
    settings: Settings, tmp_path: Path
) -> None:
    folder = write_task(tmp_path, "one_rows")
    (folder / "oracle.py").write_text("raise RuntimeError('no data here')\n")
    result = _on_sim(settings, folder)
    assert (result.is_valid, result.status) == (False, None)
    assert "no data here" in result.why


def test_on_a_gpu_the_kernel_is_timed_over_every_baseline(
    settings: Settings, tmp_path: Path
) -> None:
    folder = write_task(tmp_path, "one_rows")
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    (kernels / "one_rows.cu").write_text(WIDE)
    timer = SimTimer(settings, _wide_blocks_are_faster)
    choice = KernelChoice(str(kernels), "sm_90a", settings, _no_run)
    site = SuiteSite(timer, timer, "sm_90a", "full", choice, settings)
    result = run_task(prepare_task(TASK, folder, site), site)
    assert (result.is_valid, result.gpu) == (True, timer.facts), result.why
    speed = task_speed(result, "reference")
    assert speed is not None
    assert speed.speedup == pytest.approx(1.5, rel=0.01)
    assert speed.proven is not None
    assert speed.proven <= speed.speedup
    assert speed.sol is not None
    assert 0.5 < speed.sol < 1.0
    assert task_speed(result, "best") is None  # the problem names no library
    assert all(one.log_ratios == () for one in result.times[0].comparisons)


def test_a_run_over_one_baseline_has_its_own_results(settings: Settings, tmp_path: Path) -> None:
    folder = write_task(tmp_path, "one_rows")
    both = "".join(
        f"  - {{name: {name}, entry: {name}, layout: row_major}}\n"
        for name in ("torch_eager", "torch_compile")
    )
    with (folder / "problem.yaml").open("a") as problem:
        problem.write(f"baselines:\n{both}")
    (folder / "baseline.py").write_text("DISTRIBUTIONS = ()\n")
    choice = KernelChoice(None, "sm_90a", settings, _no_run)
    site = SuiteSite(SimDevice(settings), None, "sm_90a", "full", choice, settings)
    every, eager = (
        prepare_task(TASK, folder, replace(site, over=over)) for over in ((), ("eager",))
    )
    assert (every.problem is None, every.fault) == (False, None)
    names = [
        [one.name for one in task.problem.baselines] for task in (every, eager) if task.problem
    ]
    assert names == [["torch_eager", "torch_compile"], ["torch_eager"]]
    assert every.key != eager.key


def test_the_winner_of_a_run_is_scored_with_what_its_search_has_cost(
    settings: Settings, tmp_path: Path
) -> None:
    folder = write_task(tmp_path, "one_rows", WRONG_BODY)
    winner = tmp_path / "winner.cu"
    winner.write_text(WIDE)
    cost = SearchCost(run="run-1", candidates=12, tokens=3400, usd=0.25, is_paid=True)
    found = RunWinner(winner, "one_rows_b8xh64", cost)

    def find(*_: object) -> tuple[RunWinner, ...]:
        return (found,)

    result = _on_sim(settings, folder, "run", find)
    assert (result.is_valid, result.cost) == (True, cost)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("winner", "one_rows_b8xh64 has no winner for sm_90a: kopt bench FILE --kernel"),
        ("run", "no run of one_rows has a winner for sm_90a: kopt run --kernel one_rows_b8xh64"),
        ("run-20260101-120000-000", "run-20260101-120000-000 has no winner for one_rows"),
        ("kernels", "there is no kernel to score: kernels/one_rows.cu is no file"),
    ],
)
def test_a_kernel_that_is_not_there_is_a_fault_that_says_how_to_get_one(
    settings: Settings, tmp_path: Path, asked: str, message: str
) -> None:
    result = _on_sim(settings, write_task(tmp_path, "one_rows"), asked)
    assert result.fault is not None
    assert message in result.fault


def test_a_workload_that_the_problem_has_not_is_a_fault(settings: Settings, tmp_path: Path) -> None:
    choice = KernelChoice(None, "sm_90a", settings, _no_run)
    site = SuiteSite(SimDevice(settings), None, "sm_90a", "full", choice, settings)
    task = TASK.model_copy(update={"workloads": ("b9xh9",)})
    result = run_task(prepare_task(task, write_task(tmp_path, "one_rows"), site), site)
    assert result.fault is not None
    assert "one_rows has no workload 'b9xh9'" in result.fault
    assert "it has b8xh64" in result.fault
