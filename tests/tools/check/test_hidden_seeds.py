"""Hidden seeds: new in each draw, kept nowhere, and nothing of what is made from them is told."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.check_result import Mismatch
from kopt.kernels.problem import Problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.check.cases import Seeds, plan_cases
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.mismatch import of_hidden_inputs, without_numbers
from kopt.tools.check.run_cases import BatchResult, CaseBatch, run_cases
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.facts.check_facts import element_words
from support.synthetic_check import CANDIDATE, NumpyDevice, Spoil, plans_for, synthetic_problem

VISIBLE = (1, 2, 3)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return synthetic_problem(tmp_path / "problem", ((2, 16),))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", jobs=1)


def _submit(problem: Problem, settings: Settings, spoil: Spoil) -> BatchResult:
    seeds = Seeds(VISIBLE, draw_hidden_seeds(2))
    cases = plan_cases(problem, problem.workloads, "full", seeds)
    case = Case(problem, problem.workloads[0], CANDIDATE)
    return run_cases(CaseBatch(case, plans_for(problem), {}, cases), NumpyDevice(spoil), settings)


def _reply(result: BatchResult) -> str:
    """Return all that is told of a check but its times, which are the clock's."""
    found = result.mismatch and result.mismatch.model_dump()
    told = [one.model_dump() for one in (*result.diagnostics, *result.accuracy)]
    return json.dumps([result.status.value, found, told])


class Known:
    """The inputs of the visible seeds, by what they begin with, as any author can make them."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.seen: set[bytes] = set()
        cases = plan_cases(problem, problem.workloads, "full", Seeds(VISIBLE))
        hidden = plan_cases(problem, problem.workloads, "full", Seeds(VISIBLE, (8, 9)))
        for some in (cases, tuple(one for one in hidden if not one.hidden)):
            case = Case(problem, problem.workloads[0], CANDIDATE)
            batch = CaseBatch(case, plans_for(problem), {}, some)
            run_cases(batch, NumpyDevice(self._note), settings)

    def _note(self, request: ExecutionRequest, outputs: Arrays) -> None:
        del outputs
        self.seen.add(_key(request))

    def is_hidden(self, request: ExecutionRequest) -> bool:
        return _key(request) not in self.seen


def _key(request: ExecutionRequest) -> bytes:
    return request.inputs["x"].tobytes()


def test_every_draw_is_new_and_its_seeds_differ() -> None:
    drawn = [seed for _ in range(500) for seed in draw_hidden_seeds(2)]
    assert len(set(drawn)) == 1000
    assert all(0 <= seed < 2**63 for seed in drawn)


def test_a_check_keeps_the_visible_inputs_and_no_hidden_ones(
    problem: Problem, settings: Settings
) -> None:
    visible = Seeds(VISIBLE, (8, 9))
    cases = plan_cases(problem, problem.workloads, "full", visible)
    for _ in range(2):
        assert _submit(problem, settings, lambda request, outputs: None).status is Status.PASSED
        kept = list(settings.oracle_cache.iterdir())
        assert len(kept) == sum(not one.hidden for one in cases) < len(cases)


def test_a_failure_on_hidden_inputs_tells_no_place_and_no_value(
    problem: Problem, settings: Settings
) -> None:
    known = Known(problem, settings)

    def shout(request: ExecutionRequest, outputs: Arrays) -> None:
        if known.is_hidden(request):
            outputs["kept"][0, :5] = request.inputs["x"][0, :5]
            outputs["y_bf16"][1, 3] = 12345

    result = _submit(problem, settings, shout)
    assert result.status is Status.INCORRECT
    found = result.mismatch
    assert found is not None
    hidden = ("index", "row", "column", "expected", "got", "wrong_elements", "seed")
    assert [getattr(found, name) for name in hidden] == [None] * len(hidden)
    assert "on hidden inputs" in element_words(found)
    assert re.search(r"\d", found.pattern) is None
    for one in result.diagnostics:
        assert without_numbers(one.message) == one.message


def test_what_a_device_says_of_hidden_inputs_has_no_numbers() -> None:
    message = "2-byte store of `out1` at byte 28672 of 0x1f.5 (block (1, 0, 0)), bf16"
    found = of_hidden_inputs(Diagnostic(message=message, line=26, hint="element 7"))
    told = "…-byte store of `out1` at byte … of … (block (…, …, …)), bf16"
    assert found.message == told
    assert (found.line, found.hint) == (26, "element …")
    assert without_numbers("every 16th element, from 5 of every row") == (
        "every … element, from … of every row"
    )


@pytest.mark.slow  # dozens of full checks
def test_the_reply_does_not_follow_the_values_of_hidden_inputs(
    problem: Problem, settings: Settings
) -> None:
    known = Known(problem, settings)

    def tell(request: ExecutionRequest, outputs: Arrays) -> None:
        if known.is_hidden(request):
            spoken = int.from_bytes(_key(request)[:2], "little")
            outputs["kept"].reshape(-1)[spoken % 32] = spoken

    assert len({_reply(_submit(problem, settings, tell)) for _ in range(20)}) == 1


@pytest.mark.slow  # full checks, 100 s a thousand
@pytest.mark.parametrize("turns", [80, pytest.param(1000, marks=pytest.mark.nightly)])
def test_submissions_teach_nothing_of_the_next_hidden_inputs(
    problem: Problem, settings: Settings, turns: int
) -> None:
    """Each submission asks one bit of the hidden inputs, and fails where it is set.

    What was asked is right of inputs that never come again: with a small pool the table below
    would hold all of them after some hundred submissions.
    """
    known, table, met = Known(problem, settings), set[bytes](), list[bytes]()
    learned = np.zeros((turns, 1), dtype=bool)
    for turn in range(len(learned)):
        asked: list[bytes] = []

        def ask(
            request: ExecutionRequest, outputs: Arrays, asked: list[bytes] = asked, bit: int = turn
        ) -> None:
            if not known.is_hidden(request):
                return
            asked.append(_key(request))
            if asked[-1][bit % 64] & 1:
                outputs["kept"][0, 0] += 1000

        result = _submit(problem, settings, ask)
        learned[turn] = result.status is Status.INCORRECT
        assert not set(asked) & table
        table |= set(asked)
        met += asked
    assert 0 < learned.sum() < len(learned)  # it did learn of each draw, in vain

    def only_right_where_known(request: ExecutionRequest, outputs: Arrays) -> None:
        if _key(request) not in table | known.seen:
            outputs["kept"][0, 0] += 1000

    assert _submit(problem, settings, only_right_where_known).status is Status.INCORRECT


def test_a_mismatch_of_an_earlier_version_is_read() -> None:
    old = {"workload": "w", "tensor": "t", "gate": "ulp", "index": [1], "row": 0, "column": 1}
    old |= {"expected": "1", "got": "2", "wrong_elements": 1, "total_elements": 9}
    assert Mismatch.model_validate(old | {"pattern": "p", "seed": None, "regime": "normal"})
