"""A case: its header is parsed once, whatever is derived from it."""

from pathlib import Path

import pytest

from kopt.kernels import case as case_module
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from support.tiny_problem import HEADER, tiny_candidate, tiny_problem


@pytest.fixture
def case(tmp_path: Path) -> Case:
    problem = tiny_problem(tmp_path)
    return Case(problem, problem.workloads[0], tiny_candidate(HEADER))


def test_a_header_is_parsed_once_for_a_case_and_all_that_is_derived(case: Case) -> None:
    for workload in case.domain_from_here:
        assert case.at(workload).with_tune(case.choices[-1]).header is case.header
    again = Case(case.problem, case.workload, tiny_candidate(HEADER))
    assert again.header is case.header


def test_a_header_is_parsed_once_however_many_shapes_are_added_to_its_problem(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = case.header
    monkeypatch.delattr(case_module, "parse_header")
    drawn = [case.workload.model_copy(update={"name": f"drawn_{number}"}) for number in range(5)]
    more = case.with_shapes(drawn[:2]).with_shapes(drawn[2:]).at(drawn[4])
    assert header is not None and more.header is header
    assert more.problem.workloads == (*case.problem.workloads, *drawn)
    assert more.domain == (*case.domain, *drawn)


def test_tune_values_that_are_left_out_have_their_default(case: Case) -> None:
    default, *_, last = case.choices
    assert case.full_tune == case.default_tune == default
    assert case.with_tune(last).full_tune == last


def test_a_broken_header_claims_nothing(case: Case) -> None:
    broken = Case(case.problem, case.workload, Candidate("int x;"), {"BLOCK": 1})
    assert broken.header is None
    assert broken.parsed.diagnostics
    assert broken.domain == ()
    assert broken.domain_from_here == (case.workload,)
    assert broken.full_tune == broken.default_tune == {}
