"""What a plain copy of as many bytes leaves to gain, and when the search ends for it."""

from collections.abc import Sequence
from typing import Any

import pytest

from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import BELOW_COPY, COPY, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.headroom import expected_gain, headroom_of
from kopt.search.selection.stopping import FinishedRound, copy_reached, limit_of_speed, stop_reason
from support.populations import choices, failed, member, passed, timed, with_value

COPY_US = 2.0
BASELINE_US = 4.0


def _beside_copy(latency_us: float, copy_us: float = COPY_US) -> Evaluation:
    """Return a measured evaluation; speeds are over a baseline of 4 us."""
    evaluation = timed(latency_us, BASELINE_US / latency_us)
    return with_value(evaluation, COPY, copy_us, Provenance.MEASURED)


def _stop(members: Sequence[Member], number: int, **changes: Any) -> tuple[str, str] | None:
    return stop_reason(members, FinishedRound(number), choices(**changes))


def _gaining(*times_us: float, **fields: Any) -> list[Member]:
    """Return one member a round."""
    return [
        member(seq, _beside_copy(time), round=seq, **fields) for seq, time in enumerate(times_us)
    ]


def test_a_leader_as_fast_as_a_copy_ends_the_search_however_much_its_round_gained() -> None:
    assert _stop(_gaining(4.0, 2.05), 1) == (
        "headroom",
        "the best takes 2.050 us, 1.02 times a plain copy of as many bytes (2.000 us, measured),"
        " which leaves less than 3%",
    )


def test_a_leader_that_a_copy_leaves_enough_goes_on() -> None:
    assert _stop(_gaining(4.0, 2.07), 1) is None


def test_the_first_planned_round_ends_a_search_at_the_copy_only() -> None:
    first = FinishedRound(1, starts_families=True)
    assert stop_reason(_gaining(2.5, 2.49), first, choices()) is None
    reached = stop_reason(_gaining(2.5, 2.01), first, choices())
    assert reached is not None and reached[0] == "headroom"


def test_the_start_alone_ends_nothing_although_it_is_as_fast_as_a_copy() -> None:
    assert _stop(_gaining(2.0), 0) is None


def test_a_round_that_promises_too_little_ends_the_search() -> None:
    stop = _stop(_gaining(4.0, 3.0, 2.97), 2)
    assert stop is not None
    assert stop[0] == "headroom"
    assert stop[1].endswith("from another round like round 2 1.0% is expected, less than 3%")


def test_a_family_counts_for_what_one_more_such_gain_would_put_it_ahead() -> None:
    leader = member(0, _beside_copy(3.0))
    far = [
        leader,
        member(1, _beside_copy(6.0), family="reduction"),
        member(2, _beside_copy(5.0), family="reduction", round=1),
    ]
    assert expected_gain(far, 1) == 0.0
    assert _stop(far, 1) is not None
    near = [*far[:2], member(2, _beside_copy(3.2), family="reduction", round=1)]
    assert expected_gain(near, 1) == pytest.approx(3.0 / 3.2 * 6.0 / 3.2 - 1.0)
    assert _stop(near, 1) is None


def test_what_is_expected_is_never_more_than_a_copy_leaves() -> None:
    members = _gaining(4.0, 2.04)
    room = headroom_of(members)
    assert room is not None
    assert room.left == pytest.approx(0.02)
    assert expected_gain(members, 1) > 0.9


def test_nothing_is_expected_where_nothing_passed() -> None:
    assert expected_gain([member(0, failed())], 1) == 0.0


def test_off_leaves_the_search_to_its_own_gains() -> None:
    assert _stop(_gaining(4.0, 2.05), 1, headroom_stop="off") is None
    assert copy_reached(_gaining(4.0, 2.0), choices(headroom_stop="off")) is None


def test_without_a_copy_nothing_is_known_of_what_is_left() -> None:
    members = [member(0, passed(4.0)), member(1, passed(2.0), round=1)]
    assert headroom_of(members) is None
    assert limit_of_speed(members, choices()) is None
    assert _stop(members, 1) is None


def test_a_leader_clearly_below_the_copy_ends_nothing() -> None:
    odd = with_value(_beside_copy(1.5), BELOW_COPY, 0.75, Provenance.MEASURED)
    members = [member(0, _beside_copy(4.0)), member(1, odd, round=1)]
    assert headroom_of(members) is None
    assert _stop(members, 1) is None


def test_the_copy_is_that_of_the_first_that_was_timed() -> None:
    later = member(2, _beside_copy(2.05, copy_us=1.0), round=1)
    members = [member(0, failed()), member(1, _beside_copy(4.0)), later]
    room = headroom_of(members)
    assert room is not None and room.copy_us == COPY_US
