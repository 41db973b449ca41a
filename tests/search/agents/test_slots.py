"""Which places a round has."""

from dataclasses import replace
from typing import Any

import pytest

from kopt.config.search_settings import SearchSettings
from kopt.kernels.status import Status
from kopt.search.agents.plans import Hypothesis
from kopt.search.agents.slots import PopulationView, Slot, plan_slots, reserve_wanted
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member, Population
from kopt.search.selection.beam import select_beam
from support.populations import choices, failed, member, passed, timed

START = member(0, passed(4.0), family="other", proposer="start")


def _view(members: list[Member], settings: SearchSettings, **fields: Any) -> PopulationView:
    beam = select_beam(members, settings)
    population = Population(round=9, seed=0, members=tuple(members), beam=beam)
    known: dict[str, Any] = {"population": population, "is_first": False}
    return PopulationView(**(known | fields))


def _slots(members: list[Member], width: int = 4, **fields: Any) -> list[Slot]:
    settings = choices(width, **fields.pop("settings", {}))
    return list(plan_slots(_view(members, settings, **fields), settings))


def _ids(slots: list[Slot], kind: str = "") -> list[str]:
    return [slot.id for slot in slots if kind in ("", slot.kind)]


def _written(seq: int, branch: str, evaluation: Any, **fields: Any) -> Member:
    known: dict[str, Any] = {
        "branch": branch,
        "round": int(branch[1]),
        "lineage": "expand",
        "parents": (0,),
    }
    return member(seq, evaluation, **(known | fields))


def _idea(family: str, name: str) -> Hypothesis:
    return Hypothesis(
        slot="",
        family=family,
        name=name,
        hypothesis="h",
        mechanism="m",
        expected_gain=0.1,
        risk="r",
        evidence="e",
        parents=(0,),
    )


def test_first_plan_starts_families_and_asks_for_a_reserve() -> None:
    settings = choices(3)
    view = _view([START], settings, is_first=True)
    slots = plan_slots(view, settings)
    assert [slot.id for slot in slots] == ["new-1", "new-2", "new-3"]
    assert {(slot.lineage, slot.parents) for slot in slots} == {("expand", (0,))}
    assert reserve_wanted(view, settings) == 3
    assert reserve_wanted(_view([START], settings), settings) == 0


def test_first_plan_starts_families_from_what_kopt_wrote_where_that_is_faster() -> None:
    settings = choices(2)
    written = member(1, passed(3.0), proposer="generated", parents=(0,))
    slots = plan_slots(_view([START, written], settings, is_first=True), settings)
    assert [slot.parents for slot in slots] == [(1,), (1,)]
    assert "#1, which kopt wrote" in slots[0].why
    slow = replace(written, quick=passed(30.0))
    slots = plan_slots(_view([START, slow], settings, is_first=True), settings)
    assert [slot.parents for slot in slots] == [(0,), (0,)]


def test_every_member_of_the_beam_is_refined_and_the_fast_ones_expanded() -> None:
    members = [
        START,
        _written(1, "r1/b0", passed(2.0), family="layout"),
        _written(2, "r1/b1", passed(5.0), family="algebra"),
    ]
    slots = _slots(members, settings={"population_crossover": False})
    assert _ids(slots) == [
        "refine-r1b0",
        "refine-0",
        "refine-r1b1",
        "expand-r1b0-1",
        "expand-r1b0-2",
    ]
    assert slots[0].parents == (1,)
    assert slots[3].why == "2.000x the starting point (estimated), more than 1x"


def test_measured_parents_are_expanded_only_if_surely_above_the_baseline() -> None:
    members = [
        member(0, timed(1.0, 0.9), family="other"),
        member(1, timed(1.0, 1.004), family="layout"),
        member(2, timed(1.0, 1.020), family="algebra"),
    ]
    slots = _slots(members)
    assert _ids(slots, "expand") == ["expand-2-1", "expand-2-2"]
    assert "at least 1.015x flashinfer (PDL on) (measured)" in slots[3].why
    higher = _slots(members, settings={"tree_speedup_threshold": 1.1})
    assert _ids(higher, "expand") == []


def test_whatever_passes_is_above_a_start_that_did_not() -> None:
    members = [member(0, failed()), _written(1, "r1/b0", passed(9.0))]
    assert "expand-r1b0-1" in _ids(_slots(members))


def test_who_has_no_time_that_counts_is_refined_and_not_expanded() -> None:
    untimed = Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")
    slots = _slots([START, _written(1, "r1/b0", untimed, family="layout")])
    assert {"refine-r1b0"} == {slot.id for slot in slots if slot.parents == (1,)}


def test_a_lineage_that_failed_too_often_is_not_refined() -> None:
    members = [START]
    members += [
        _written(1 + i, f"r{1 + i}/b0", failed(), lineage="refine", family="other")
        for i in range(3)
    ]
    assert "refine-0" in _ids(_slots(members[:3]))
    assert "refine-0" not in _ids(_slots(members))


def test_parents_of_different_families_are_merged_unless_that_is_switched_off() -> None:
    members = [
        START,
        _written(1, "r1/b0", passed(1.0), family="layout"),
        _written(2, "r1/b1", passed(2.0), family="algebra"),
    ]
    (cross,) = [slot for slot in _slots(members) if slot.kind == "cross"]
    assert (cross.id, cross.lineage, cross.parents) == ("cross-r1b0-r1b1", "cross", (1, 2))
    assert _ids(_slots(members, past_slots=frozenset({cross.id})), "cross") == []
    assert _ids(_slots(members, settings={"population_crossover": False}), "cross") == []


def test_failed_hypotheses_are_tried_once_more_the_most_promising_first() -> None:
    members = [
        START,
        _written(1, "r1/b0", failed(Status.COMPILE_ERROR), family="layout"),
        _written(2, "r1/b1", failed(Status.INCORRECT), family="algebra"),
        _written(
            3,
            "r1/b1",
            failed(Status.CRASH),
            lineage="fix",
            parents=(2,),
            attempt=1,
            family="algebra",
        ),
    ]
    slots = _slots(members)
    assert _ids(slots, "retry") == ["retry-r1b1", "retry-r1b0"]
    retry = next(slot for slot in slots if slot.kind == "retry")
    assert (retry.lineage, retry.parents, retry.why) == ("fix", (3,), "crash: row 3 is wrong")
    assert _ids(_slots(members, past_slots=frozenset({"retry-r1b1"})), "retry") == ["retry-r1b0"]


def test_unproven_families_and_young_hypotheses_are_tried_again_first() -> None:
    members = [
        START,
        _written(1, "r1/b0", failed(), family="algebra"),
        _written(2, "r1/b1", failed(), family="layout"),
        _written(3, "r1/b2", passed(5.0), family="algebra"),
        _written(4, "r2/b0", failed(), family="layout"),
    ]
    assert _ids(_slots(members), "retry") == ["retry-r2b0", "retry-r1b1", "retry-r1b0"]


def test_a_retry_that_failed_is_not_retried() -> None:
    members = [
        START,
        _written(1, "r1/b0", failed(), family="layout"),
        member(2, failed(), branch="r2/b0", lineage="fix", parents=(1,), round=2, family="layout"),
    ]
    past = frozenset({"retry-r1b0"})
    assert _ids(_slots(members, past_slots=past), "retry") == []


def test_what_was_mended_is_no_failure() -> None:
    members = [
        START,
        _written(1, "r1/b0", failed(), family="layout"),
        member(2, passed(9.0), branch="r1/b0", attempt=1, lineage="fix", parents=(1,), round=1),
    ]
    assert _ids(_slots(members), "retry") == []


def test_failures_of_callers_and_sweeps_are_not_tried_again() -> None:
    assert _ids(_slots([START, member(1, failed(), parents=(0,))]), "retry") == []


def test_the_reserve_fills_what_is_left_families_that_the_beam_lacks_first() -> None:
    reserve = (_idea("other", "more of it"), _idea("layout", "sectors"))
    slots = _slots([START], reserve=reserve)
    assert _ids(slots, "reserve") == ["reserve-1", "reserve-0"]
    assert slots[-1].why == "planned earlier: more of it"


def test_retired_families_get_nothing_from_retries_or_reserve() -> None:
    members = [START, member(1, passed(1.0), family="layout")]
    members += [_written(2 + i, f"r{1 + i}/b0", passed(9.0), family="algebra") for i in range(3)]
    members.append(_written(5, "r3/b1", failed(), family="algebra"))
    slots = _slots(members, reserve=(_idea("algebra", "again"),))
    assert _ids(slots, "retry") == _ids(slots, "reserve") == []
    assert not any(slot.parents[0] == 2 for slot in slots if slot.kind in ("refine", "expand"))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_round_has_no_more_slots_than_its_size(width: int) -> None:
    members = [START]
    members += [_written(1 + i, f"r1/b{i}", failed(), family="layout") for i in range(40)]
    reserve = tuple(_idea("reduction", str(i)) for i in range(40))
    assert len(_slots(members, width, reserve=reserve)) == choices(width).round_size


def test_nothing_to_try_is_no_slot() -> None:
    assert _slots([member(0, failed(), proposer="start")]) == []
    assert _slots([]) == []
