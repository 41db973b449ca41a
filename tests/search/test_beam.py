"""Selection and the measure of progress."""

from math import inf

import pytest

from kopt.kernels.status import Status
from kopt.search.beam import rank, round_gain, select_beam
from kopt.search.evaluator import Evaluation
from kopt.search.proposer import Member
from support.scripted_runs import failed, member, passed, timed


def _seqs(members: list[Member] | tuple[Member, ...]) -> list[int]:
    return [m.seq for m in members]


def test_fastest_comes_first_and_failures_are_left_out() -> None:
    members = [member(0, passed(3.0)), member(1, failed()), member(2, passed(1.0)), member(3, None)]
    assert _seqs(rank(members)) == [2, 0]


def test_same_binary_and_launches_count_once() -> None:
    members = [member(0, passed(1.0, "same")), member(1, passed(1.0, "same"))]
    assert _seqs(rank(members)) == [0]


def test_unknown_binaries_are_not_taken_for_equal() -> None:
    assert _seqs(rank([member(0, passed(1.0)), member(1, passed(1.0))])) == [0, 1]


def test_ties_go_to_fewer_registers_then_the_shorter_source() -> None:
    members = [
        member(0, passed(1.0, registers=64)),
        member(1, passed(1.0, registers=32), source="longer source"),
        member(2, passed(1.0, registers=32), source="short"),
    ]
    assert _seqs(rank(members)) == [2, 1, 0]


def test_passed_without_a_latency_comes_last() -> None:
    bare = Evaluation(status=Status.PASSED, summary="passed", device="sim")
    assert _seqs(rank([member(0, bare), member(1, passed(9.0))])) == [1, 0]


def test_measured_candidates_stand_in_the_order_of_their_speedups_whatever_their_times() -> None:
    members = [member(0, timed(2.0, speedup=1.0)), member(1, timed(2.1, speedup=1.1))]
    assert _seqs(rank(members)) == [1, 0]


def test_a_measured_time_without_a_speedup_orders_nothing() -> None:
    impossible = timed(0.1, speedup=1.0)
    impossible = impossible.model_copy(update={"values": impossible.values[:1]})
    assert _seqs(rank([member(0, impossible), member(1, timed(9.0, speedup=0.2))])) == [1, 0]


def test_best_of_every_family_is_kept_before_second_bests() -> None:
    members = [
        member(0, passed(1.0), family="vectorization"),
        member(1, passed(1.1), family="vectorization"),
        member(2, passed(1.2), family="vectorization"),
        member(3, passed(5.0), family="reduction"),
    ]
    assert _seqs(select_beam(members, 2)) == [0, 3]
    assert _seqs(select_beam(members, 3)) == [0, 1, 3]


def test_no_family_takes_more_than_half_of_the_width() -> None:
    members = [member(i, passed(1.0 + i), family="vectorization") for i in range(5)]
    members.append(member(5, passed(9.0), family="reduction"))
    assert _seqs(select_beam(members, 4)) == [0, 1, 5]


def test_single_family_fills_the_beam() -> None:
    assert _seqs(select_beam([member(i, passed(1.0 + i)) for i in range(5)], 4)) == [0, 1, 2, 3]


def test_candidate_that_failed_a_full_check_leaves_the_beam() -> None:
    members = [member(0, passed(1.0), full=failed()), member(1, passed(2.0))]
    assert _seqs(select_beam(members, 2)) == [1]


def test_gain_is_that_of_the_best() -> None:
    before = [member(0, passed(2.0))]
    assert round_gain(before, [*before, member(1, passed(1.6))]) == 0.25
    assert round_gain(before, [*before, member(1, passed(3.0))]) == 0.0


def test_gain_of_measured_candidates_is_that_of_their_speedups() -> None:
    before = [member(0, timed(2.0, speedup=1.0))]
    assert round_gain(before, [*before, member(1, timed(2.0, speedup=1.25))]) == pytest.approx(0.25)


def test_a_leader_without_a_time_that_counts_in_the_full_check_leaves_the_beam() -> None:
    untimed = Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")
    members = [member(0, timed(1.0, 2.0), full=untimed), member(1, timed(2.0, 1.0))]
    assert _seqs(select_beam(members, 2)) == [1]


def test_family_that_still_gains_counts_although_the_leader_stands_still() -> None:
    before = [member(0, passed(1.0)), member(1, passed(4.0), family="reduction")]
    after = [*before, member(2, passed(2.0), family="reduction")]
    assert round_gain(before, after) == 1.0


def test_first_latency_is_an_infinite_gain() -> None:
    assert round_gain([member(0, failed())], [member(1, passed(1.0))]) == inf
