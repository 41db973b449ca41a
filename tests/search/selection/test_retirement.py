"""Why a candidate has no place in the beam."""

from dataclasses import replace

import pytest

from kopt.kernels.status import Status
from kopt.search.records.evaluation import FAMILY_CONTRADICTED, Evaluation
from kopt.search.records.members import Member
from kopt.search.selection.beam import select_beam
from kopt.search.selection.retirement import Beams, Retirement, find_retirements
from support.populations import choices, failed, member, passed, timed, with_value


def _retired(members: list[Member], width: int, before: tuple[int, ...] = ()) -> list[Retirement]:
    settings = choices(width)
    beams = Beams(before, [one.seq for one in select_beam(members, settings)])
    return list(find_retirements(members, (one.seq for one in members), beams, settings))


def test_slower_one_is_told_what_it_would_have_had_to_beat() -> None:
    members = [member(0, passed(1.0)), member(1, passed(2.0)), member(2, passed(3.0))]
    (one,) = _retired(members, 2, before=(2,))
    assert (one.seq, one.reason, one.was_in_beam) == (2, "slower", True)
    last = "no faster than #1, the last of the beam, with 2.000 us (estimated)"
    assert one.why == f"3.000 us (estimated), {last}"


def test_measured_candidates_are_compared_by_speedup() -> None:
    members = [member(0, timed(1.0, 1.5)), member(1, timed(0.5, 1.2))]
    (one,) = _retired(members, 1)
    assert one.why.startswith("1.200x flashinfer (PDL on) (measured), no faster than #0")


def test_words_are_of_the_measurement_that_decided() -> None:
    longer = replace(member(1, timed(0.5, 1.3)), tie=timed(0.6, 1.1))
    (one,) = _retired([member(0, timed(0.5, 1.2)), longer], 1)
    assert one.why.startswith("1.100x flashinfer (PDL on) (measured), no faster than #0")


def test_faster_one_of_a_full_family_is_told_that_its_family_is_full() -> None:
    members = [
        member(0, passed(1.0)),
        member(1, passed(1.1)),
        member(2, passed(1.2)),
        member(3, passed(9.0), family="reduction"),
    ]
    (one,) = _retired(members, 3)
    assert (one.seq, one.reason) == (2, "family_full")
    assert "vectorization has its share of the beam already (#0, #1)" in one.why


def test_family_is_full_although_a_place_is_free() -> None:
    members = [member(seq, passed(1.0 + seq)) for seq in range(3)]
    members.append(member(3, passed(2.5), family="reduction"))
    (one,) = _retired(members, 4)
    assert (one.seq, one.reason) == (2, "family_full")


def test_same_program_is_named_by_the_one_that_stands_for_it() -> None:
    members = [member(0, passed(1.0, "p")), member(1, passed(1.0, "p"))]
    (one,) = _retired(members, 2)
    assert (one.reason, one.why) == (
        "same_program",
        "the same program as #0: equal cubins and launches",
    )


@pytest.mark.parametrize(
    ("quick", "full", "reason", "said"),
    [
        (None, None, "unevaluated", "budget"),
        (failed(Status.CRASH), None, "failed", "crash: row 3 is wrong"),
        (passed(1.0), failed(Status.DATA_RACE), "refuted", "full check: data_race"),
        (
            Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0"),
            None,
            "untimed",
            "no time that counts: impossible",
        ),
    ],
)
def test_who_cannot_be_kept_is_told_why(
    quick: Evaluation | None, full: Evaluation | None, reason: str, said: str
) -> None:
    members = [member(0, passed(2.0)), member(1, quick, full=full)]
    (one,) = _retired(members, 1)
    assert (one.seq, one.reason) == (1, reason)
    assert said in one.why


def test_whose_interval_reaches_the_last_of_the_beam_is_not_called_slower_outright() -> None:
    members = [member(0, timed(1.0, 1.5)), member(1, timed(1.0, 1.497, half_width=0.05))]
    (one,) = _retired(members, 1)
    assert one.reason == "slower"
    assert "not proven faster than #0, the last of the beam" in one.why


def test_replaced_parent_is_told_by_whom() -> None:
    members = [member(0, passed(2.0)), member(1, passed(1.0), lineage="refine", parents=(0,))]
    (one,) = _retired(members, 4, before=(0,))
    assert (one.reason, one.was_in_beam) == ("replaced", True)
    assert one.why == "#1, a refinement of it, has taken its place: 1.000 us (estimated)"


def test_member_of_a_retired_family_is_told_how_far_it_trails() -> None:
    members = [member(0, passed(1.0))]
    members += [member(1 + i, passed(2.0 + i), family="layout", round=i) for i in range(3)]
    found = _retired(members, 4)
    assert {one.reason for one in found} == {"family_retired"}
    words = "layout has not gained for 2 rounds, and its best has 50% of the leader's speed"
    assert found[0].why == words


def test_member_of_a_spent_family_is_told_so() -> None:
    members = [member(0, passed(1.0)), member(1, passed(1.05), family="layout")]
    members += [
        member(2 + i, failed(), family="layout", lineage="refine", parents=(1,)) for i in range(3)
    ]
    found = {one.seq: one for one in _retired(members, 4)}
    assert found[1].reason == "family_retired"
    assert found[1].why == "refining the best of layout has failed too often in a row"


def test_false_claim_is_named_where_it_cost_the_place() -> None:
    lie = with_value(passed(1.2), FAMILY_CONTRADICTED)
    members = [
        member(0, passed(1.0), family="layout"),
        member(1, lie, family="tensor_cores"),
        member(2, passed(5.0), family="algebra"),
    ]
    (one,) = _retired(members, 2)
    assert (one.seq, one.reason) == (1, "claim_contradicted")
    assert "does not show tensor_cores" in one.why


def test_the_same_program_as_a_refuted_one_is_told_so() -> None:
    members = [
        member(0, passed(1.0, "p"), full=failed(Status.DATA_RACE)),
        member(1, passed(1.0, "p")),
        member(2, passed(2.0)),
    ]
    found = {one.seq: one for one in _retired(members, 4)}
    assert found[1].reason == "refuted"
    assert found[1].why == "the same program as #0, which a later check refuted"


def test_who_a_second_measurement_refuted_is_told_what_it_found() -> None:
    members = [member(0, passed(2.0)), member(1, passed(1.0), tie=failed(Status.DATA_RACE))]
    (one,) = _retired(members, 2)
    assert one.reason == "refuted"
    assert one.why.startswith("second check: data_race")
