"""A change that mixes techniques is taken apart where that is cheap, and its parts add up."""

from dataclasses import replace
from math import log

import pytest

from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.states.attribution import ablations_wanted, revoked_samples
from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member
from support.populations import failed, passed
from support.taught_runs import ON_SIM, made, rows_of, start, taught, told, variant

AT_THE_END = replace(ON_SIM, is_final=True)


def mixed(seq: int, latency_us: float, *techniques: str) -> Member:
    """Return a candidate that can leave out each of its techniques."""
    tune = {f"WITH_{name.upper()}": 1 for name in techniques}
    return made(seq, passed(latency_us), *techniques, tune={**tune, "BLOCK": 128})


def off(seq: int, of: Member, evaluation: Evaluation, *techniques: str) -> Member:
    return variant(seq, of, evaluation, **{f"WITH_{name.upper()}": 0 for name in techniques})


def wanted(*members: Member) -> list[dict[str, int]]:
    return [one.tune for one in ablations_wanted(members, rows_of(members), ON_SIM)]


def gains(samples: tuple[Sample, ...]) -> list[float]:
    return [one.measured or 0.0 for one in samples]


def test_mixture_that_cannot_be_split_is_one_composite() -> None:
    assert told(taught(start(), made(1, passed(5.0), "aa", "bb"))) == [
        ("run-1/1", ("aa", "bb"), "gained")
    ]


def test_relative_with_a_part_leaves_the_rest_to_the_mixture() -> None:
    part, both = made(1, passed(8.0), "aa"), made(2, passed(5.0), "aa", "bb")
    sample = taught(start(), part, both)[-1]
    assert told([sample]) == [("run-1/2/from1", ("bb",), "gained")]
    assert sample.measured == pytest.approx(log(8 / 5))
    assert (sample.before, sample.previous) == ("s1", "aa")


def test_relative_that_came_later_changes_nothing_that_was_taught() -> None:
    both = made(1, passed(5.0), "aa", "bb")
    part = made(2, passed(8.0), "aa", round=2, branch="r2/b0")
    assert told(taught(start(), both, part))[0] == ("run-1/1", ("aa", "bb"), "gained")


def test_relative_over_another_program_is_none() -> None:
    part = made(1, passed(8.0), "aa")
    other = made(2, passed(9.0), "cc")
    both = made(3, passed(5.0), "aa", "bb", parents=(2,), round=2, branch="r2/b0")
    assert told(taught(start(), part, other, both))[-1][1] == ("aa", "bb")


def test_last_technique_is_switched_off_first() -> None:
    assert wanted(start(), mixed(1, 5.0, "aa", "bb", "cc")) == [
        {"WITH_AA": 1, "WITH_BB": 0, "WITH_CC": 0, "BLOCK": 128},
        {"WITH_AA": 1, "WITH_BB": 1, "WITH_CC": 0, "BLOCK": 128},
    ]


def test_technique_without_a_switch_stays_on_in_every_variant() -> None:
    whole = made(1, passed(5.0), "aa", "bb", tune={"WITH_AA": 1})
    assert wanted(start(), whole) == [{"WITH_AA": 0}]
    samples = taught(start(), whole, off(2, whole, passed(8.0), "aa"))
    assert [one.techniques for one in samples] == [("bb",), ("aa",)]


@pytest.mark.parametrize(
    "whole",
    [
        mixed(1, 5.0, "aa"),
        mixed(1, 9.9, "aa", "bb"),
        made(1, passed(5.0), "aa", "bb"),
        made(1, failed(), "aa", "bb", tune={"WITH_BB": 1}),
    ],
    ids=["single", "within noise", "no switch", "failed"],
)
def test_variants_that_would_show_nothing_are_not_wanted(whole: Member) -> None:
    assert wanted(start(), whole) == []


def test_mixture_with_a_measured_relative_needs_no_variants() -> None:
    assert wanted(start(), made(1, passed(8.0), "aa"), mixed(2, 5.0, "aa", "bb")) == []


def test_variants_split_a_mixture_into_steps_that_add_up() -> None:
    whole = mixed(1, 5.0, "aa", "bb", "cc")
    one, two = off(2, whole, passed(8.0), "bb", "cc"), off(3, whole, passed(7.5), "cc")
    samples = taught(start(), whole, one, two)
    assert told(samples) == [
        ("run-1/1/WITH_AA", ("aa",), "gained"),
        ("run-1/1/WITH_BB", ("bb",), "gained"),
        ("run-1/1/WITH_CC", ("cc",), "gained"),
    ]
    assert gains(samples) == pytest.approx([log(10 / 8), log(8 / 7.5), log(7.5 / 5)])
    assert sum(gains(samples)) == pytest.approx(log(10 / 5))
    assert [one.previous for one in samples] == [None, "aa", "bb"]
    assert wanted(start(), whole, one, two) == []


def test_variants_of_the_same_round_are_not_taken_for_the_candidate() -> None:
    whole = mixed(1, 5.0, "aa", "bb")
    part = replace(off(2, whole, passed(8.0), "bb"), round=1)
    assert [one.techniques for one in taught(start(), whole, part)] == [("aa",), ("bb",)]


def test_step_over_a_variant_that_does_not_work_stays_a_composite() -> None:
    whole = mixed(1, 5.0, "aa", "bb", "cc")
    samples = taught(
        start(), whole, off(2, whole, failed(), "bb", "cc"), off(3, whole, passed(7.5), "cc")
    )
    assert told(samples) == [
        ("run-1/1/WITH_AA+WITH_BB", ("aa", "bb"), "gained"),
        ("run-1/1/WITH_CC", ("cc",), "gained"),
    ]


def test_switch_that_puts_something_slow_in_place_of_a_technique_gains_it_nothing() -> None:
    whole = mixed(1, 9.0, "aa", "bb")
    samples = taught(start(), whole, off(2, whole, passed(40.0), "bb"))
    assert told(samples) == [("run-1/1", ("aa", "bb"), "gained")]
    assert gains(samples) == pytest.approx([log(10 / 9)])


def test_relative_that_was_done_badly_is_no_step_to_the_mixture() -> None:
    part, both = made(1, passed(40.0), "aa"), made(2, passed(5.0), "aa", "bb")
    assert told(taught(start(), part, both)) == [
        ("run-1/1", ("aa",), "lost"),
        ("run-1/2", ("aa", "bb"), "gained"),
    ]


def test_mixture_that_loses_step_by_step_is_split_all_the_same() -> None:
    whole = mixed(1, 20.0, "aa", "bb")
    samples = taught(start(), whole, off(2, whole, passed(15.0), "bb"))
    assert [one.outcome for one in samples] == ["lost", "lost"]


def test_mixture_waits_for_its_variants_and_is_taught_whole_at_the_end() -> None:
    members = start(), mixed(1, 5.0, "aa", "bb")
    assert taught(*members) == ()
    whole = taught(*members, context=AT_THE_END)
    assert told(whole) == [("run-1/1", ("aa", "bb"), "gained")]
    split = taught(*members, off(2, members[1], passed(8.0), "bb"), context=AT_THE_END)
    assert revoked_samples([one.id for one in whole], split) == ("run-1/1",)


def test_switch_of_a_technique_that_nobody_planned_is_a_claim() -> None:
    whole = made(1, passed(5.0), "aa", tune={"WITH_BB": 1})
    samples = taught(start(), whole, off(2, whole, passed(8.0), "bb"))
    assert [one.techniques for one in samples] == [("aa",), ("bb",)]


def test_switch_of_the_program_before_is_no_claim_of_its_child() -> None:
    parent = made(1, passed(8.0), "aa", tune={"WITH_AA": 1})
    child = made(
        2,
        passed(7.0),
        "bb",
        tune={"WITH_AA": 1, "WITH_BB": 1},
        parents=(1,),
        round=2,
        branch="r2/b0",
    )
    assert told(taught(start(), parent, child))[-1] == ("run-1/2", ("bb",), "gained")


def test_switch_that_is_off_claims_nothing() -> None:
    whole = made(1, passed(5.0), "aa", "bb", tune={"WITH_BB": 0})
    assert told(taught(start(), whole)) == [("run-1/1", ("aa",), "gained")]


def test_unknown_switch_is_an_ordinary_constant() -> None:
    whole = made(1, passed(5.0), "aa", tune={"WITH_CHECKS": 1})
    swept = variant(2, whole, passed(4.0), WITH_CHECKS=0)
    assert [one.techniques for one in taught(start(), whole, swept)] == [
        ("aa",),
        ("tune_constants",),
    ]
