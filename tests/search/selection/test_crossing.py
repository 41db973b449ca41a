"""Who is merged with whom, and what becomes of the merged one."""

from collections.abc import Sequence
from typing import Any

import pytest

from kopt.config.search_settings import SearchSettings
from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member, Population
from kopt.search.selection.beam import select_beam
from kopt.search.selection.crossing import combine_parents, find_pairs, judge_merge, pair_id
from support.populations import choices, failed, member, passed, timed


def _pairs(
    members: Sequence[Member], past: Sequence[str] = (), width: int = 2
) -> list[tuple[int, int]]:
    settings: SearchSettings = choices(width)
    beam = select_beam(members, settings)
    population = Population(round=9, seed=0, members=tuple(members), beam=beam)
    return [(one.seq, two.seq) for one, two in find_pairs(population, frozenset(past))]


def _of(seq: int, family: str, latency_us: float, **fields: Any) -> Member:
    return member(seq, passed(latency_us), family=family, **fields)


def test_leader_is_the_skeleton_and_the_best_of_another_family_the_donor() -> None:
    members = [_of(0, "layout", 1.2), _of(1, "algebra", 1.0), _of(2, "layout", 1.1)]
    assert _pairs(members) == [(1, 2)]


def test_two_families_make_one_pair_however_many_are_in_the_beam() -> None:
    members = [_of(0, "layout", 1.0), _of(1, "layout", 1.1), _of(2, "algebra", 1.2)]
    assert _pairs(members, width=4) == [(0, 2)]


def test_three_families_make_two_pairs_those_of_the_beam_first() -> None:
    members = [_of(0, "layout", 1.0), _of(1, "algebra", 1.2), _of(2, "persistent", 1.1)]
    assert _pairs(members, width=2) == [(0, 2), (0, 1)]


def test_a_family_that_is_not_in_the_beam_donates_a_retired_one_too() -> None:
    members = [_of(0, "layout", 1.0)]
    members += [_of(1 + i, "algebra", 3.0 + i, round=i) for i in range(3)]
    assert _pairs(members, width=1) == [(0, 1)]


def test_no_pair_is_merged_twice_in_either_order() -> None:
    members = [_of(0, "layout", 1.0), _of(1, "algebra", 2.0)]
    assert pair_id(members[0], members[1]) == pair_id(members[1], members[0]) == "cross-0-1"
    assert _pairs(members, past=["cross-0-1"]) == []


def test_parent_and_child_are_not_merged() -> None:
    members = [_of(0, "layout", 2.0), _of(1, "algebra", 1.0, lineage="expand", parents=(0,))]
    assert _pairs(members) == []


def test_one_family_has_nobody_to_be_merged_with() -> None:
    assert _pairs([_of(0, "layout", 1.0), _of(1, "layout", 2.0)]) == []


def test_who_failed_donates_nothing() -> None:
    members = [
        _of(0, "layout", 1.0),
        member(1, failed(), family="algebra"),
        member(2, passed(0.5), family="clusters", full=failed()),
    ]
    assert _pairs(members) == []


def test_combiner_merges_the_leader_with_the_best_of_another_family() -> None:
    members = [_of(0, "layout", 1.0), _of(1, "layout", 1.1), _of(2, "algebra", 2.0)]
    assert [one.seq for one in combine_parents(members, choices())] == [0, 2]
    three = combine_parents(members, choices(combine_top_k=3))
    assert [one.seq for one in three] == [0, 1, 2]


def test_combiner_takes_the_next_best_where_there_is_one_family() -> None:
    members = [_of(0, "layout", 1.0), _of(1, "layout", 1.1)]
    assert [one.seq for one in combine_parents(members, choices())] == [0, 1]


@pytest.mark.parametrize("top_k", [0, 1])
def test_combiner_can_be_switched_off(top_k: int) -> None:
    members = [_of(0, "layout", 1.0), _of(1, "algebra", 2.0)]
    assert combine_parents(members, choices(combine_top_k=top_k)) == ()


def test_combiner_has_no_work_with_a_single_line() -> None:
    members = [
        _of(0, "layout", 2.0),
        _of(1, "algebra", 1.0, lineage="refine", parents=(0,)),
        member(2, failed(), family="reduction"),
    ]
    assert combine_parents(members, choices()) == ()


@pytest.mark.parametrize(
    ("speedup", "is_kept"), [(1.60, True), (1.50, True), (1.43, True), (1.42, False)]
)
def test_a_merged_kernel_is_kept_unless_it_is_well_below_its_best_parent(
    speedup: float, is_kept: bool
) -> None:
    parents = [member(0, timed(1.0, 1.5)), member(1, timed(1.0, 1.2))]
    verdict = judge_merge(member(2, timed(1.0, speedup)), parents, choices())
    assert verdict.is_kept is is_kept
    assert f"{speedup:.3f}x" in verdict.why and "1.500x" in verdict.why


UNTIMED = Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")


@pytest.mark.parametrize("merged", [member(2, failed()), member(2, None), member(2, UNTIMED)])
def test_a_merged_kernel_that_fails_is_reverted_to_its_best_parent(merged: Member) -> None:
    parents = [member(0, passed(2.0)), member(1, passed(1.0))]
    verdict = judge_merge(merged, parents, choices())
    assert not verdict.is_kept
    assert verdict.why.startswith("reverted to #1: ")
