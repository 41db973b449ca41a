"""A sweep is one application of one technique, whatever number of choices it tried."""

from dataclasses import replace
from math import log

import pytest

from kopt.search.knowledge.states.applications import TUNE_CONSTANTS
from kopt.search.records.evaluation import FAMILY_CONTRADICTED
from support.populations import failed, passed, with_value
from support.taught_runs import made, start, taught, told, variant

FIRST = replace(start(), tune={"BLOCK": 64})


def test_round_of_a_sweep_teaches_its_best_against_the_best_before() -> None:
    slow, fast = (
        variant(1, FIRST, passed(12.0), BLOCK=128),
        variant(2, FIRST, passed(8.0), BLOCK=256),
    )
    (sample,) = taught(FIRST, slow, fast)
    assert told([sample]) == [("run-1/2/from0", (TUNE_CONSTANTS,), "gained")]
    assert sample.measured == pytest.approx(log(10 / 8))


def test_rounds_of_a_sweep_add_up_to_what_it_gained() -> None:
    first = variant(1, FIRST, passed(8.0), BLOCK=128)
    second = variant(2, first, passed(7.0), BLOCK=256)
    samples = taught(FIRST, first, second)
    assert [one.previous for one in samples] == [None, TUNE_CONSTANTS]
    assert sum(one.measured or 0.0 for one in samples) == pytest.approx(log(10 / 7))


def test_sweep_that_finds_nothing_faster_loses_nothing() -> None:
    samples = taught(
        FIRST, variant(1, FIRST, passed(12.0), BLOCK=128), variant(2, FIRST, failed(), BLOCK=256)
    )
    assert told(samples) == [("run-1/1/from0", (TUNE_CONSTANTS,), "within_noise")]
    assert samples[0].measured == 0.0


def test_choices_of_a_branch_are_compared_with_its_own_source() -> None:
    written = made(1, passed(8.0), "aa", tune={"BLOCK": 64})
    swept = variant(2, written, passed(6.0), BLOCK=128)
    sample = taught(start(), written, swept)[-1]
    assert (sample.techniques, sample.previous) == ((TUNE_CONSTANTS,), "aa")
    assert sample.measured == pytest.approx(log(8 / 6))
    assert (sample.before, sample.after) == ("s1", "s1")


def test_variant_with_a_switch_off_is_no_sweep() -> None:
    written = made(1, passed(8.0), "aa", tune={"WITH_AA": 1})
    assert told(taught(start(), written, variant(2, written, passed(9.0), WITH_AA=0))) == [
        ("run-1/1", ("aa",), "gained")
    ]


def test_sweep_of_an_ablated_candidate_is_compared_with_that_one() -> None:
    written = made(1, passed(8.0), "aa", tune={"WITH_AA": 1, "BLOCK": 64})
    bare = variant(2, written, passed(7.0), WITH_AA=0)
    sample = taught(start(), written, bare, variant(3, bare, passed(6.0), BLOCK=128))[-1]
    assert told([sample]) == [("run-1/3/from2", (TUNE_CONSTANTS,), "gained")]
    assert sample.measured == pytest.approx(log(7 / 6))
    assert sample.previous is None


def test_source_that_never_worked_is_no_program_before() -> None:
    broken = replace(FIRST, quick=failed())
    assert taught(broken, variant(1, broken, passed(8.0), BLOCK=128)) == ()


def test_choice_whose_code_belies_its_family_is_passed_over() -> None:
    belied = variant(1, FIRST, with_value(passed(5.0), FAMILY_CONTRADICTED), BLOCK=128)
    assert told(taught(FIRST, belied)) == [("run-1/1/from0", (TUNE_CONSTANTS,), "within_noise")]


def test_refuted_choice_is_passed_over() -> None:
    refuted = replace(variant(1, FIRST, passed(5.0), BLOCK=128), full=failed())
    kept = variant(2, FIRST, passed(8.0), BLOCK=256)
    assert told(taught(FIRST, refuted, kept)) == [("run-1/2/from0", (TUNE_CONSTANTS,), "gained")]
