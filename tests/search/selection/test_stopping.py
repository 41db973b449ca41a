"""When a search has stopped paying."""

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from kopt.kernels.status import Status
from kopt.search.records.evaluation import FLOOR, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.stopping import FinishedRound, Gain, round_gain, stop_reason
from support.populations import choices, failed, member, passed, timed, with_value


def _stop(members: Sequence[Member], number: int, **fields: Any) -> tuple[str, str] | None:
    return stop_reason(members, FinishedRound(number, **fields), choices())


def _gain(members: Sequence[Member], number: int) -> Gain:
    return round_gain(members, number, choices())


def _measured(seq: int, speedup: float, half_width: float = 0.005, **fields: Any) -> Member:
    evaluation = timed(1.0, speedup, half_width=half_width)
    return member(seq, evaluation, **({"round": seq} | fields))


def _with_floor(evaluation: Evaluation, floor_us: float) -> Evaluation:
    return with_value(evaluation, FLOOR, floor_us)


def test_gain_is_that_of_the_best() -> None:
    before = member(0, passed(2.0))
    assert _gain([before, member(1, passed(1.6), round=1)], 1) == Gain(0.25, is_confirmed=True)
    assert _gain([before, member(1, passed(3.0), round=1)], 1).fraction == 0.0


def test_gain_of_measured_candidates_is_that_of_their_speedups() -> None:
    found = _gain([_measured(0, 1.0), _measured(1, 1.25)], 1)
    assert found.fraction == pytest.approx(0.25)
    assert found.is_confirmed


def test_overlapping_intervals_confirm_no_gain() -> None:
    found = _gain([_measured(0, 1.0, 0.03), _measured(1, 1.05, 0.03)], 1)
    assert found.fraction == pytest.approx(0.05)
    assert not found.is_confirmed


def test_an_open_family_that_gains_counts_although_the_leader_stands_still() -> None:
    members = [
        member(0, passed(1.0)),
        member(1, passed(4.0), family="reduction"),
        member(2, passed(2.0), family="reduction", round=1),
    ]
    assert _gain(members, 1) == Gain(1.0, is_confirmed=True)
    assert _stop(members, 1) is None


def test_a_retired_family_s_gain_does_not_count() -> None:
    members = [member(0, passed(1.0))]
    members += [
        member(1 + i, passed(latency_us), family="layout", round=i)
        for i, latency_us in enumerate((4.0, 4.0, 4.0))
    ]
    members.append(member(4, passed(3.95), family="layout", round=3))
    assert _gain(members, 3).fraction == 0.0


def test_first_success_of_a_family_is_no_gain_unless_it_leads() -> None:
    members = [member(0, passed(1.0)), member(1, passed(1.5), family="layout", round=1)]
    assert _gain(members, 1).fraction == 0.0
    leading = [member(0, passed(1.0)), member(1, passed(0.5), family="layout", round=1)]
    assert _gain(leading, 1) == Gain(1.0, is_confirmed=True)


def test_first_success_of_all_is_an_infinite_gain() -> None:
    members = [member(0, failed()), member(1, passed(1.0), round=1)]
    assert _gain(members, 1) == Gain(inf, is_confirmed=True)
    assert _stop(members, 1) is None


def test_search_goes_on_while_a_round_gains_enough() -> None:
    assert _stop([member(0, passed(1.03)), member(1, passed(1.0), round=1)], 1) is None


def test_a_gain_that_is_just_enough_is_enough() -> None:
    members = [member(0, passed(1.25)), member(1, passed(1.0), round=1)]
    assert stop_reason(members, FinishedRound(1), choices(early_stop_min_improvement=0.25)) is None


def test_search_stops_after_a_round_that_gains_too_little() -> None:
    stop = _stop([member(0, passed(1.02)), member(1, passed(1.0), round=1)], 1)
    assert stop == (
        "early_stop",
        "round 1 improved the best by 2.0% in estimated time, less than 3%",
    )


def test_a_gain_in_the_noise_keeps_a_search_with_a_fresh_leader_going_and_no_other() -> None:
    fresh = [_measured(0, 1.0, 0.03), _measured(1, 1.05, 0.03)]
    assert _stop(fresh, 1) is None
    stale = [
        _measured(0, 2.0),
        _measured(1, 1.0, 0.03, family="layout"),
        member(3, timed(1.0, 1.05, half_width=0.03), family="layout", round=3),
    ]
    assert _stop(stale, 3) == (
        "early_stop",
        "round 3 improved the best by 5.0% in measured time, which its interval does not confirm",
    )


def test_a_leader_of_the_round_before_is_fresh_as_well() -> None:
    members = [
        _measured(0, 1.0, 0.03, family="layout"),
        _measured(2, 2.0),
        member(3, timed(1.0, 1.05, half_width=0.03), family="layout", round=3),
    ]
    assert _stop(members, 3) is None


def test_the_first_planned_round_ends_nothing_for_want_of_a_gain() -> None:
    members = [member(0, passed(1.0)), member(1, passed(2.0), round=1)]
    assert _stop(members, 1, starts_families=True) is None
    assert (
        _stop([member(0, failed()), member(1, failed(), round=1)], 1, starts_families=True) is None
    )


def test_a_search_in_which_nothing_passes_is_exhausted() -> None:
    members = [member(0, failed()), member(1, failed(), round=1)]
    assert _stop(members, 1) == ("exhausted", "none of the first 2 candidates passed")


def test_a_leader_as_fast_as_can_be_ends_the_search() -> None:
    members = [
        member(0, passed(4.0)),
        member(1, _with_floor(timed(2.0, 2.0), 1.90), round=1),
    ]
    assert _stop(members, 1) == (
        "roofline",
        "the best takes 2.000 us (measured); the least possible is 1.900 us (computed), 95% of it",
    )
    members[1] = member(1, _with_floor(timed(2.0, 2.0), 1.89), round=1)
    assert _stop(members, 1) is None


def test_without_a_floor_or_a_time_nobody_knows_how_far_the_leader_is() -> None:
    bare = _with_floor(Evaluation(status=Status.PASSED, summary="impossible", device="sim"), 1.0)
    assert _stop([member(0, failed()), member(1, bare, round=1)], 1) == (
        "early_stop",
        "round 1 improved the best by 0.0% in unknown time, less than 3%",
    )


def test_the_start_alone_stops_nothing() -> None:
    assert _stop([member(0, _with_floor(passed(1.0), 1.0))], 0) is None
    assert _stop([member(0, failed())], 0) is None
