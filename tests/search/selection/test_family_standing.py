"""Which families lead, stand still or fail."""

import pytest

from kopt.kernels.families import FAMILIES
from kopt.search.records.evaluation import FAMILY_CONTRADICTED
from kopt.search.records.members import Member
from kopt.search.selection.family_standing import (
    FamilyStanding,
    family_standings,
    retired_families,
    untried_families,
)
from support.populations import choices, failed, member, passed, timed, with_value


def _standings(*members: Member) -> dict[str, FamilyStanding]:
    return {one.family: one for one in family_standings(members, choices())}


def _rounds(family: str, first: int, *latencies_us: float) -> list[Member]:
    """Return a member a round, with numbers from `first`."""
    return [
        member(first + index, passed(latency_us), round=index, family=family)
        for index, latency_us in enumerate(latencies_us)
    ]


def test_family_that_trails_without_a_gain_has_plateaued() -> None:
    members = (*_rounds("reduction", 0, 1.0), *_rounds("layout", 1, 2.0, 2.0, 1.99))
    found = _standings(*members)
    assert found["reduction"].state == "leading"
    assert (found["layout"].state, found["layout"].rounds_without_gain) == ("plateaued", 2)
    assert found["layout"].relative_speed == pytest.approx(1.0 / 1.99)


@pytest.mark.parametrize("latencies_us", [(2.0, 1.8, 1.8), (1.05, 1.05, 1.05)])
def test_family_that_gained_lately_or_is_close_stays_open(latencies_us: list[float]) -> None:
    members = (*_rounds("reduction", 0, 1.0), *_rounds("layout", 1, *latencies_us))
    assert _standings(*members)["layout"].state == "open"


def test_rounds_that_did_not_try_a_family_do_not_count_against_it() -> None:
    members = (*_rounds("reduction", 0, 1.0, 1.0, 1.0, 1.0), *_rounds("layout", 4, 2.0))
    assert _standings(*members)["layout"].rounds_without_gain == 0


def test_family_of_which_nothing_passed_is_failing() -> None:
    found = _standings(member(0, passed(1.0)), member(1, failed(), family="layout"))
    assert (found["layout"].state, found["layout"].best) == ("failing", None)


def test_fastest_family_comes_first() -> None:
    members = (*_rounds("layout", 0, 2.0), *_rounds("reduction", 1, 1.0))
    assert [one.family for one in family_standings(members, choices())] == ["reduction", "layout"]


def test_every_other_family_is_untried() -> None:
    untried = untried_families([member(0, passed(1.0))])
    assert set(untried) == set(FAMILIES) - {"vectorization", "other"}


def test_a_gain_that_the_intervals_do_not_confirm_is_none() -> None:
    rounds = [
        member(seq, timed(1.0, speedup, half_width=0.05), round=seq, family="layout")
        for seq, speedup in enumerate((1.00, 1.04, 1.08))
    ]
    assert _standings(*rounds, member(3, timed(1.0, 2.0)))["layout"].rounds_without_gain == 2


def test_family_whose_best_was_refined_for_nothing_is_spent() -> None:
    members = [member(0, passed(1.0)), member(1, passed(1.05), family="layout")]
    members += [
        member(2 + i, failed(), family="layout", lineage="refine", parents=(1,), round=1 + i)
        for i in range(3)
    ]
    assert _standings(*members[:-1])["layout"].state == "open"
    found = _standings(*members)
    assert found["layout"].state == "spent"
    assert found["layout"].is_retired and not found["vectorization"].is_retired
    assert retired_families(members, choices()) == {"layout"}


def test_the_leader_s_family_is_never_retired() -> None:
    members = [member(0, passed(1.0))]
    members += [
        member(1 + i, failed(), lineage="refine", parents=(0,), round=1 + i) for i in range(5)
    ]
    assert _standings(*members)["vectorization"].state == "leading"
    assert retired_families(members, choices()) == frozenset()


def test_how_far_a_family_may_trail_is_a_setting() -> None:
    members = (*_rounds("reduction", 0, 1.0), *_rounds("layout", 1, 1.3, 1.3, 1.3))
    assert retired_families(members, choices()) == {"layout"}
    assert retired_families(members, choices(retire_trail=0.7)) == frozenset()


def test_a_leader_that_was_refuted_leads_no_family() -> None:
    found = _standings(
        member(0, passed(1.0), full=failed(), family="layout"), member(1, passed(2.0))
    )
    assert (found["vectorization"].state, found["layout"].state) == ("leading", "failing")


def test_family_that_was_claimed_in_contradiction_to_the_code_is_still_untried() -> None:
    lie = with_value(passed(1.0), FAMILY_CONTRADICTED)
    assert "tensor_cores" in untried_families([member(0, lie, family="tensor_cores")])


def test_speed_of_a_family_is_that_over_the_leader_s() -> None:
    found = _standings(member(0, passed(4.0)), member(1, passed(5.0), family="layout"))
    assert found["layout"].relative_speed == pytest.approx(0.8)


def test_rounds_in_which_nothing_passed_or_all_was_slower_are_rounds_without_a_gain() -> None:
    members = _rounds("layout", 0, 2.0, 3.0, 2.5)
    members.append(member(3, failed(), round=3, family="layout"))
    assert _standings(*members)["layout"].rounds_without_gain == 3
