"""Who survives a round, and who is measured again first."""

import pytest

from kopt.config.search_settings import SearchSettings
from kopt.kernels.status import Status
from kopt.search.records.evaluation import FAMILY_CONTRADICTED, NOISE_FLOOR, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.beam import find_ties, select_beam
from support.populations import choices, failed, member, passed, timed, with_value


def _beam(members: list[Member], settings: SearchSettings) -> list[int]:
    return [one.seq for one in select_beam(members, settings)]


def _measured(seq: int, speedup: float, half_width: float = 0.01, family: str = "layout") -> Member:
    return member(seq, timed(1.0, speedup, half_width=half_width), family=family)


def test_best_of_every_family_is_kept_before_second_bests() -> None:
    members = [
        member(0, passed(1.0), family="vectorization"),
        member(1, passed(1.1), family="vectorization"),
        member(2, passed(1.2), family="vectorization"),
        member(3, passed(5.0), family="reduction"),
    ]
    assert _beam(members, choices(2)) == [0, 3]
    assert _beam(members, choices(3)) == [0, 1, 3]


def test_no_family_takes_more_than_half_of_the_width() -> None:
    members = [member(i, passed(1.0 + i), family="vectorization") for i in range(5)]
    members.append(member(5, passed(9.0), family="reduction"))
    assert _beam(members, choices(4)) == [0, 1, 5]


def test_single_family_fills_the_beam() -> None:
    members = [member(i, passed(1.0 + i)) for i in range(5)]
    assert _beam(members, choices(4)) == [0, 1, 2, 3]


def test_more_families_than_places_leave_the_slowest_out() -> None:
    families = ("layout", "algebra", "reduction", "coarsening", "divergence")
    members = [member(i, passed(1.0 + i), family=family) for i, family in enumerate(families)]
    assert _beam(members, choices(4)) == [0, 1, 2, 3]


def test_a_fastest_beam_takes_the_fastest() -> None:
    members = [member(i, passed(1.0 + i), family="vectorization") for i in range(3)]
    members += [member(3, passed(1.5), family="layout"), member(4, passed(9.0), family="algebra")]
    assert _beam(members, choices(3, diversity_mode="fastest")) == [0, 3, 1]


def test_a_fastest_beam_of_one_family_takes_the_best_of_another_in() -> None:
    members = [member(i, passed(1.0 + i / 10), family="vectorization") for i in range(4)]
    members.append(member(4, passed(1.9), family="layout"))
    assert _beam(members, choices(3, diversity_mode="fastest")) == [0, 1, 4]
    alone = choices(3, diversity_mode="fastest", population_crossover=False)
    assert _beam(members, alone) == [0, 1, 2]
    assert _beam(members[:4], choices(3, diversity_mode="fastest")) == [0, 1, 2]


@pytest.mark.parametrize("level", ["full", "tie"])
def test_candidate_that_failed_a_later_check_leaves_the_beam(level: str) -> None:
    members = [member(0, passed(1.0), **{level: failed()}), member(1, passed(2.0))]
    assert _beam(members, choices(2)) == [1]


@pytest.mark.parametrize("level", ["full", "tie"])
def test_candidate_without_a_time_that_counts_in_a_later_check_leaves_the_beam(level: str) -> None:
    untimed = Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")
    members = [member(0, timed(1.0, 2.0), **{level: untimed}), member(1, timed(2.0, 1.0))]
    assert _beam(members, choices(2)) == [1]


def test_the_same_program_as_a_refuted_one_has_no_place_either() -> None:
    members = [
        member(0, passed(1.0, "p"), full=failed(Status.DATA_RACE)),
        member(1, passed(1.0, "p"), family="layout"),
        member(2, passed(2.0, "q")),
    ]
    assert _beam(members, choices(4)) == [2]


def test_a_better_refinement_takes_the_place_of_its_parent() -> None:
    members = [
        member(0, passed(2.0)),
        member(1, passed(1.0), lineage="refine", parents=(0,), round=1),
        member(2, passed(3.0), family="layout"),
    ]
    assert _beam(members, choices(4)) == [1, 2]


@pytest.mark.parametrize("lineage", ["tune", "expand", "cross"])
def test_only_a_refinement_takes_its_parent_s_place(lineage: str) -> None:
    members = [
        member(0, passed(2.0)),
        member(1, passed(1.0), lineage=lineage, parents=(0,), round=1),
    ]
    assert _beam(members, choices(4)) == [1, 0]


def test_a_retired_family_has_no_place() -> None:
    members = [member(0, passed(1.0), family="layout")]
    members += [member(1 + i, passed(2.0), family="algebra", round=i) for i in range(3)]
    assert _beam(members, choices(4)) == [0]


def test_a_contradicted_claim_gets_no_place_for_its_family() -> None:
    members = [
        member(0, passed(1.0), family="layout"),
        member(1, with_value(passed(1.2), FAMILY_CONTRADICTED), family="tensor_cores"),
        member(2, passed(1.1), family="layout"),
        member(3, passed(5.0), family="algebra"),
    ]
    assert _beam(members, choices(2)) == [0, 3]
    assert _beam(members, choices(3)) == [0, 2, 3]
    assert _beam(members, choices(4)) == [0, 2, 1, 3]


def test_who_leads_stays_although_its_claim_is_contradicted() -> None:
    members = [
        member(0, with_value(passed(1.0), FAMILY_CONTRADICTED), family="tensor_cores"),
        member(1, passed(2.0), family="layout"),
    ]
    assert _beam(members, choices(1)) == [0]


def test_ties_at_the_head_and_at_the_edge_are_measured_again() -> None:
    members = [
        _measured(0, 1.500),
        _measured(1, 1.495),
        _measured(2, 1.300, family="algebra"),
        _measured(3, 1.295, family="algebra"),
        _measured(4, 1.100, family="algebra"),
    ]
    assert find_ties(members, choices(3)) == (0, 1, 2, 3)


def test_clear_differences_need_no_second_measurement() -> None:
    members = [_measured(seq, 1.5 - seq / 10) for seq in range(6)]
    assert find_ties(members, choices(3)) == ()


def test_ties_far_from_the_edge_do_not_matter() -> None:
    members = [_measured(0, 2.0), _measured(1, 1.8), _measured(2, 1.2), _measured(3, 1.195)]
    assert find_ties(members, choices(2)) == ()


def test_a_tie_within_a_family_decides_who_of_it_is_kept() -> None:
    members = [
        _measured(0, 2.000),
        _measured(1, 1.500),
        _measured(2, 1.495),
        _measured(3, 1.200, family="algebra"),
        _measured(4, 1.100, family="reduction"),
    ]
    assert _beam(members, choices(4)) == [0, 1, 3, 4]
    assert find_ties(members, choices(4)) == (1, 2)


def test_who_is_kept_out_for_its_family_s_sake_is_no_tie_of_the_last() -> None:
    members = [_measured(0, 2.0), _measured(1, 1.8), _measured(2, 1.2, family="algebra")]
    assert _beam(members, choices(2)) == [0, 2]
    assert find_ties(members, choices(2)) == ()


def test_nobody_is_measured_a_third_time() -> None:
    again = timed(1.0, 1.5, half_width=0.01)
    members = [member(0, timed(1.0, 1.5), tie=again), _measured(1, 1.495)]
    assert find_ties(members, choices(2)) == (1,)


def test_estimates_have_no_interval_to_narrow() -> None:
    assert find_ties([member(0, passed(1.0)), member(1, passed(1.0))], choices(1)) == ()


def test_estimates_that_are_not_told_apart_are_not_made_again() -> None:
    members = [
        member(seq, with_value(passed(us), NOISE_FLOOR, 0.02)) for seq, us in enumerate((2.0, 2.01))
    ]
    assert find_ties(members, choices()) == ()


def test_nothing_is_tied_where_nothing_passed() -> None:
    assert find_ties([member(0, failed())], choices(2)) == ()
    assert find_ties([], choices(2)) == ()
