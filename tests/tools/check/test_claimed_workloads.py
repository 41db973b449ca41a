"""A candidate that is wrong elsewhere than asked: its claim is named, with what claims less."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.sim.device import SimDevice
from support.small_silu import write_small_silu

WRONG_AT_4 = "int H, int B) {\n  if (B == 4) H -= 8;"


@pytest.fixture
def asked(tmp_path: Path) -> Case:
    """Return a kernel that claims both workloads and is right at the first alone."""
    problem = load_problem(write_small_silu(tmp_path) / "silu_and_mul_small")
    source = (problem.folder / "reference.cu").read_text("utf-8")
    wrong = source.replace("args: [input, out, H]", "args: [input, out, H, B]")
    wrong = wrong.replace("int H) {", WRONG_AT_4)
    return Case(problem, problem.workloads[0], Candidate(wrong))


def checked(case: Case, settings: Settings, level: CheckLevel = "quick") -> CheckResult:
    return check_candidate(CheckRequest(case, level), SimDevice(settings), settings)


@pytest.mark.slow  # a full check on the simulator
def test_another_workload_that_where_claims_is_named_with_the_line_that_claims_less(
    asked: Case, settings: Settings
) -> None:
    result = checked(asked, settings, level="full")
    assert result.status is not Status.PASSED
    note = result.diagnostics[-1]
    assert note.severity == "note" and note.line == 4
    assert "b4xh512 is not the workload that was asked for, but `where` claims it" in note.message
    assert note.hint is not None
    narrower = note.hint.partition('where: "')[2].removesuffix('"')
    source = asked.candidate.source.replace('where: "true"', f'where: "{narrower}"')
    header = parse_header(Candidate(source), asked.problem).header
    assert header is not None and header.where == narrower
    narrowed = Case(asked.problem, asked.workload, Candidate(source))
    assert [one.name for one in narrowed.domain] == ["b2xh512"]
    assert checked(narrowed, settings, level="full").status is Status.PASSED


def test_a_failure_at_the_workload_that_was_asked_for_has_no_such_note(
    asked: Case, settings: Settings
) -> None:
    there = asked.at(asked.problem.workloads[1])
    result = checked(there, settings)
    assert result.status is not Status.PASSED
    assert not any("asked for" in one.message for one in result.diagnostics)


def test_the_worst_numbers_of_a_full_check_name_their_inputs(
    asked: Case, settings: Settings
) -> None:
    right = Case(
        asked.problem,
        asked.workload,
        Candidate((asked.problem.folder / "reference.cu").read_text("utf-8")),
    )
    result = checked(right, settings, level="full")
    assert result.status is Status.PASSED
    (accuracy,) = result.accuracy
    numbers = {
        name
        for name in ("mismatch_fraction", "max_abs", "max_rel", "l2_ratio")
        if getattr(accuracy, name)
    }
    assert set(accuracy.worst_on) == numbers
    assert all("inputs" in told and "hidden" not in told for told in accuracy.worst_on.values())
