"""What each level runs."""

from pathlib import Path

import pytest

from kopt.kernels.case_inputs import SINGLE_REGIMES
from kopt.kernels.problem import Problem
from kopt.tools.check.cases import (
    LARGE_BYTES,
    LEVEL_REGIMES,
    MEDIUM_BYTES,
    Seeds,
    buffer_bytes,
    plan_cases,
    without_known,
)
from kopt.tools.check.unwritten_gate import POISONS
from support.synthetic_check import synthetic_problem

SEEDS = Seeds(visible=(1, 2, 3), hidden=(1001, 1002))


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return synthetic_problem(tmp_path, ((2048, 2048), (8, 64), (16, 64)))


def test_quick_runs_one_seed_under_both_poisons(problem: Problem) -> None:
    (case,) = plan_cases(problem, problem.workloads[1:2], "quick", SEEDS)
    assert (case.seed, case.regime, case.hidden) == (1, "normal", False)
    assert [(run.poison, run.schedule_seed) for run in case.runs] == [(p, 0) for p in POISONS]


def test_full_starts_with_the_smallest_workload(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    names = list(dict.fromkeys(case.workload.name for case in cases))
    assert names == ["b8xh64", "b16xh64", "b2048xh2048"]


def test_full_meets_every_seed_and_every_regime(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads[1:2], "full", SEEDS)
    assert {case.regime for case in cases} == set(SINGLE_REGIMES)
    assert {case.seed for case in cases if not case.hidden} == {1, 2, 3}
    assert {case.seed for case in cases if case.hidden} == {1001, 1002}
    runs = [run for case in cases for run in case.runs]
    assert {run.poison for run in runs} == set(POISONS)
    assert len({run.schedule_seed for run in runs}) == len(runs)


def test_every_workload_meets_hidden_ordinary_inputs_with_its_own_scalars(
    problem: Problem,
) -> None:
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    kept = [case for case in cases if case.keeps_scalars]
    assert all(case.hidden for case in kept)
    ordinary = [case.workload.name for case in kept if case.regime == "normal"]
    assert ordinary == ["b8xh64", "b16xh64", "b2048xh2048"]


def test_a_small_workload_meets_a_hidden_regime_that_the_seeds_draw(problem: Problem) -> None:
    def drawn(seed: int) -> str:
        seeds = Seeds(visible=(1, 2, 3), hidden=(seed, seed + 1))
        return plan_cases(problem, problem.workloads[1:2], "full", seeds)[-1].regime

    assert {drawn(seed) for seed in range(200)} == set(SINGLE_REGIMES[1:])


def test_zero_blocks_run_under_both_poisons(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads[1:], "full", SEEDS)
    pairs = [case for case in cases if case.regime == "zero_blocks"]
    assert len(pairs) == 2
    assert all([run.poison for run in case.runs] == list(POISONS) for case in pairs)


def test_workloads_of_a_domain_meet_hidden_seeds_in_different_regimes(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads[1:], "full", SEEDS)
    hidden = {(case.workload.name, case.regime) for case in cases if case.hidden}
    assert len({regime for _, regime in hidden}) > 2


def test_more_seeds_than_regimes_are_all_used(problem: Problem) -> None:
    seeds = Seeds(visible=tuple(range(9)), hidden=(1001,))
    cases = plan_cases(problem, problem.workloads[1:2], "full", seeds)
    assert {case.seed for case in cases} == {*range(9), 1001}


def test_a_large_workload_has_one_visible_and_one_hidden_seed(problem: Problem) -> None:
    large = problem.workloads[0]
    assert buffer_bytes(problem, large) > LARGE_BYTES
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    visible, ordinary, assorted = (case for case in cases if case.workload == large)
    assert (visible.seed, visible.hidden, visible.regime) == (1, False, "normal")
    assert (ordinary.seed, ordinary.hidden, ordinary.regime) == (1001, True, "normal")
    assert (assorted.seed, assorted.hidden) == (1001, True)
    schedules = {case.runs[0].schedule_seed for case in (visible, ordinary, assorted)}
    assert len(schedules) == 3


def test_hidden_inputs_stand_for_visible_ones_at_a_large_workload(problem: Problem) -> None:
    large, small = problem.workloads[:2]
    planned = plan_cases(problem, problem.workloads, "full", SEEDS)
    cases = without_known(problem, planned, small)
    assert [case for case in cases if case.workload != large] == [
        case for case in planned if case.workload != large
    ]
    met = [(case.regime, case.hidden) for case in cases if case.workload == large]
    assert met == [("normal", True), ("assorted", True)]


def test_a_large_workload_without_rows_keeps_its_special_visible_inputs(problem: Problem) -> None:
    whole = problem.model_copy(update={"row_axis": None})
    large, small = whole.workloads[:2]
    cases = without_known(whole, plan_cases(whole, whole.workloads, "full", SEEDS), small)
    found = [case.regime for case in cases if case.workload == large and not case.hidden]
    assert found
    assert "normal" not in found


def test_visible_inputs_stay_where_a_report_shows_them(problem: Problem) -> None:
    large = problem.workloads[0]
    for workloads, named in ((problem.workloads, large), ((large,), problem.workloads[1])):
        planned = plan_cases(problem, workloads, "full", SEEDS)
        assert without_known(problem, planned, named) == planned


def test_visible_inputs_stay_where_there_are_no_hidden_ones(problem: Problem) -> None:
    quick = plan_cases(problem, problem.workloads, "quick", SEEDS)
    unhidden = plan_cases(problem, problem.workloads, "full", Seeds(SEEDS.visible))
    for planned in (quick, unhidden):
        assert without_known(problem, planned, problem.workloads[1]) == planned


def test_a_large_workload_meets_every_regime_in_rows_of_one_call(problem: Problem) -> None:
    *_, hidden = plan_cases(problem, problem.workloads, "full", SEEDS)
    assert (hidden.regime, hidden.hidden) == ("assorted", True)
    assert {run.poison for run in hidden.runs} == set(POISONS)  # its codes have scales


def test_a_medium_workload_meets_every_regime_in_one_call(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path / "medium", ((512, 2048), (8, 64)))
    medium = problem.workloads[0]
    assert MEDIUM_BYTES < buffer_bytes(problem, medium) <= LARGE_BYTES
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    met = [(case.regime, case.hidden) for case in cases if case.workload == medium]
    assert met == [("normal", False), ("normal", True), ("assorted", True)]


def test_a_domain_of_large_workloads_meets_masks_and_empty_states_too(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads[:1], "full", SEEDS)
    regimes = [case.regime for case in cases]
    assert regimes == ["normal", "normal", "assorted", "zero_blocks", "edges", "channels"]
    assert {(case.seed, case.hidden) for case in cases} == {(1, False), (1001, True)}
    runs = [run for case in cases for run in case.runs]
    assert len({run.schedule_seed for run in runs}) == len(runs)


def test_codes_with_scales_run_under_both_poisons_in_one_kind_of_inputs(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads[:1], "full", SEEDS)
    assert [case.regime for case in cases if len(case.runs) == 2] == ["zero_blocks"]


def test_labels_never_name_a_hidden_seed(problem: Problem) -> None:
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    assert not any("100" in case.label for case in cases if case.hidden)


def test_large_workloads_without_rows_meet_every_regime_in_calls_of_their_own(
    problem: Problem,
) -> None:
    whole = problem.model_copy(update={"row_axis": None})
    large = [w for w in whole.workloads if buffer_bytes(whole, w) > MEDIUM_BYTES]
    first, *others = large
    cases = plan_cases(whole, (first, *others), "full", SEEDS)
    smallest = min(large, key=lambda one: buffer_bytes(whole, one))
    met = {case.regime for case in cases if case.workload == smallest}
    assert met == set(LEVEL_REGIMES["full"])
