"""How attempts at a refinement ended, and what that means for who is refined next."""

from typing import Any

import pytest

from kopt.kernels.status import Status
from kopt.search.records.evaluation import NOISE_FLOOR, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.lineages import (
    Lineage,
    attempts_of,
    is_related,
    outcome_of,
    trace_lineages,
)
from support.populations import failed, member, passed, timed, with_value

EFFECT = 0.02


def _measured(speedup: float, half_width: float = 0.001, noise: float = 0.0) -> Evaluation:
    return with_value(timed(1.0, speedup, half_width=half_width), NOISE_FLOOR, noise)


def _refined(seq: int, evaluation: Evaluation | None, parent: int, **fields: Any) -> Member:
    known: dict[str, Any] = {"lineage": "refine", "parents": (parent,), "round": seq}
    return member(seq, evaluation, **(known | fields))


def _traced(*members: Member) -> dict[int, Lineage]:
    return trace_lineages(members, EFFECT)


@pytest.mark.parametrize(
    ("child", "outcome"),
    [
        (failed(Status.COMPILE_ERROR), "compile_fail"),
        (failed(Status.REFUSED), "compile_fail"),
        (failed(Status.INCORRECT), "wrong"),
        (_measured(1.500), "improved"),
        (_measured(1.100, half_width=0.11), "stagnant"),
        (_measured(1.025, noise=0.03), "stagnant"),
        (_measured(1.015), "stagnant"),
        (_measured(0.9995, half_width=0.0001), "stagnant"),
        (_measured(0.990), "regression"),
        (_measured(0.900, half_width=0.2), "stagnant"),
    ],
)
def test_an_attempt_s_outcome_is_what_the_intervals_confirm(
    child: Evaluation, outcome: str
) -> None:
    parent = member(0, _measured(1.0, half_width=0.0001))
    assert outcome_of(member(1, child), parent, EFFECT) == outcome


def test_whatever_passes_improves_a_parent_that_did_not() -> None:
    assert outcome_of(member(1, passed(9.0)), member(0, failed()), EFFECT) == "improved"


def test_who_a_later_check_refutes_was_wrong() -> None:
    child = member(1, passed(1.0), full=failed(Status.DATA_RACE))
    assert outcome_of(child, member(0, passed(2.0)), EFFECT) == "wrong"


def test_attempts_without_an_improvement_are_counted_in_a_row() -> None:
    found = _traced(
        member(0, passed(2.0)),
        _refined(1, failed(), 0),
        _refined(2, passed(2.5), 0),
        _refined(3, passed(2.0, registers=99), 0),
    )
    assert (found[0].refine_fails, found[0].replaced_by) == (3, None)


def test_an_improvement_starts_the_count_again_and_takes_the_parent_s_place() -> None:
    found = _traced(member(0, passed(2.0)), _refined(1, failed(), 0), _refined(2, passed(1.0), 0))
    assert (found[0].refine_fails, found[0].replaced_by) == (0, 2)
    assert found[2] == Lineage(refine_fails=0, replaced_by=None)


def test_a_gain_within_the_noise_takes_the_place_and_the_count_of_its_parent() -> None:
    found = _traced(
        member(0, passed(2.0)),
        _refined(1, failed(), 0),
        _refined(2, passed(1.99), 0),
        _refined(3, failed(), 2),
    )
    assert found[0].replaced_by == 2
    assert found[2].refine_fails == 3


def test_a_refinement_that_fails_does_not_take_the_place_of_a_parent_that_has_none() -> None:
    assert _traced(member(0, failed()), _refined(1, failed(), 0))[0] == Lineage(1, None)


def test_a_refinement_of_nobody_counts_for_nobody() -> None:
    orphan = _refined(1, passed(1.0), 0, parents=())
    assert _traced(member(0, passed(2.0)), orphan)[0] == Lineage(0, None)


def test_a_refinement_that_a_later_check_refutes_takes_no_place() -> None:
    found = _traced(member(0, passed(2.0)), _refined(1, passed(1.0), 0, full=failed()))
    assert (found[0].refine_fails, found[0].replaced_by) == (1, None)


def test_an_attempt_counts_once_with_all_that_mends_it() -> None:
    members = (
        member(0, passed(2.0)),
        _refined(1, failed(), 0),
        _refined(2, failed(), 1, lineage="fix"),
        _refined(3, passed(3.0), 2, lineage="fix"),
        _refined(4, passed(1.0), 3, lineage="fix"),
    )
    assert {root: len(attempt) for root, attempt in attempts_of(members).items()} == {0: 1, 1: 4}
    assert _traced(*members[:4])[0].refine_fails == 1
    assert _traced(*members)[0] == Lineage(refine_fails=0, replaced_by=4)


def test_children_of_other_kinds_do_not_count() -> None:
    kinds = ("tune", "expand", "cross", "combine")
    children = [_refined(1 + i, failed(), 0, lineage=kind) for i, kind in enumerate(kinds)]
    assert _traced(member(0, passed(2.0)), *children)[0] == Lineage(0, None)


def test_what_was_not_evaluated_yet_does_not_count() -> None:
    assert _traced(member(0, passed(2.0)), _refined(1, None, 0))[0].refine_fails == 0


def test_the_same_program_again_is_no_gain() -> None:
    found = _traced(
        member(0, passed(2.0, "p")), _refined(1, passed(2.0, "p"), 0, source="longer" * 99)
    )
    assert found[0] == Lineage(refine_fails=1, replaced_by=None)


def test_relation_goes_over_generations_and_both_ways() -> None:
    family = [member(0, None), *(_refined(i, None, i - 1) for i in range(1, 4)), member(4, None)]
    by_seq = {one.seq: one for one in family}
    assert is_related(family[0], family[3], by_seq) and is_related(family[3], family[0], by_seq)
    assert not is_related(family[3], family[4], by_seq)
