"""Which families lead, stand still or fail."""

import pytest

from kopt.kernels.families import FAMILIES
from kopt.search.family_standing import FamilyStanding, family_standings, untried_families
from kopt.search.proposer import Member
from support.scripted_runs import failed, member, passed


def _standings(*members: Member) -> dict[str, FamilyStanding]:
    return {one.family: one for one in family_standings(members, 0.03)}


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
    assert [one.family for one in family_standings(members, 0.03)] == ["reduction", "layout"]


def test_every_other_family_is_untried() -> None:
    untried = untried_families([member(0, passed(1.0))])
    assert set(untried) == set(FAMILIES) - {"vectorization", "other"}
