"""The order of candidates: by what is proven, then by simplicity."""

from kopt.kernels.status import Status
from kopt.search.records.evaluation import NOISE_FLOOR, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.ranking import rank
from support.populations import failed, member, passed, timed, with_value


def _seqs(members: list[Member]) -> list[int]:
    return [one.seq for one in members]


def _measured(speedup: float, half_width: float) -> Evaluation:
    return timed(1.0, speedup, half_width=half_width)


def test_fastest_comes_first_and_failures_are_left_out() -> None:
    members = [member(0, passed(3.0)), member(1, failed()), member(2, passed(1.0)), member(3, None)]
    assert _seqs(rank(members)) == [2, 0]


def test_same_binary_and_launches_count_once() -> None:
    members = [member(0, passed(1.0, "same")), member(1, passed(1.0, "same"))]
    assert _seqs(rank(members)) == [0]


def test_the_longest_measurement_of_a_program_stands_for_it() -> None:
    again = _measured(1.1, 0.001)
    quick = _measured(1.3, 0.1).model_copy(update={"equivalence": "same"})
    members = [member(0, quick, source="short"), member(1, quick, tie=again), member(2, passed(1))]
    assert _seqs(rank(members))[0] == 1


def test_unknown_binaries_are_not_taken_for_equal() -> None:
    assert _seqs(rank([member(0, passed(1.0)), member(1, passed(1.0))])) == [0, 1]


def test_equal_estimates_go_to_fewer_registers_then_the_shorter_source() -> None:
    members = [
        member(0, passed(1.0, registers=64)),
        member(1, passed(1.0, registers=32), source="longer source"),
        member(2, passed(1.0, registers=32), source="short"),
    ]
    assert _seqs(rank(members)) == [2, 1, 0]


def test_estimates_within_their_resolution_go_to_the_simpler_one() -> None:
    def estimated(seq: int, latency_us: float, registers: int) -> Member:
        evaluation = passed(latency_us, registers=registers)
        return member(seq, with_value(evaluation, NOISE_FLOOR, 0.02))

    near = [estimated(0, 2.000, 64), estimated(1, 2.015, 32)]
    apart = [estimated(0, 2.000, 64), estimated(1, 2.050, 32)]
    assert [one.seq for one in rank(near)] == [1, 0]
    assert [one.seq for one in rank(apart)] == [0, 1]


def test_who_says_nothing_of_registers_is_the_least_simple() -> None:
    silent = passed(1.0)
    silent = silent.model_copy(update={"values": silent.values[:1]})
    assert _seqs(rank([member(0, silent), member(1, passed(1.0, registers=255))])) == [1, 0]


def test_last_tie_break_does_not_depend_on_which_branch_was_done_first() -> None:
    members = [
        member(5, passed(1.0), branch="r1/b2", round=1),
        member(6, passed(1.0), branch="r1/b10", round=1),
        member(7, passed(1.0), branch="r1/b0", round=1, attempt=1),
        member(8, passed(1.0), branch="r1/b0", round=1),
    ]
    assert [one.label for one in rank(members)] == ["r1b0", "r1b0f1", "r1b2", "r1b10"]


def test_passed_without_a_time_that_counts_comes_last() -> None:
    bare = Evaluation(status=Status.PASSED, summary="passed", device="sim")
    assert _seqs(rank([member(0, bare), member(1, passed(9.0))])) == [1, 0]


def test_measured_candidates_stand_in_the_order_of_their_speedups_whatever_their_times() -> None:
    members = [member(0, timed(2.0, speedup=1.0)), member(1, timed(2.1, speedup=1.1))]
    assert _seqs(rank(members)) == [1, 0]


def test_a_measured_time_without_a_speedup_orders_nothing() -> None:
    impossible = timed(0.1, speedup=1.0)
    impossible = impossible.model_copy(update={"values": impossible.values[:1]})
    assert _seqs(rank([member(0, impossible), member(1, timed(9.0, speedup=0.2))])) == [1, 0]


def test_what_is_proven_goes_before_a_lucky_measurement() -> None:
    members = [member(0, _measured(1.30, 0.20)), member(1, _measured(1.25, 0.01))]
    assert _seqs(rank(members)) == [1, 0]


def test_within_the_noise_of_the_best_the_simpler_one_is_better() -> None:
    members = [
        member(0, _measured(1.200, 0.010), source="a longer source"),
        member(1, _measured(1.195, 0.010), source="short"),
        member(2, _measured(1.150, 0.010), source="s"),
    ]
    assert _seqs(rank(members)) == [1, 0, 2]


def test_a_wide_interval_is_no_tie_with_a_narrow_one() -> None:
    members = [
        member(0, _measured(1.200, 0.005), source="a longer source"),
        member(1, _measured(1.202, 0.300), source="s"),
    ]
    assert _seqs(rank(members)) == [0, 1]


def test_a_second_measurement_counts_instead_of_the_first() -> None:
    members = [
        member(0, _measured(1.30, 0.02), tie=_measured(1.15, 0.01)),
        member(1, _measured(1.20, 0.02)),
    ]
    assert _seqs(rank(members)) == [1, 0]
