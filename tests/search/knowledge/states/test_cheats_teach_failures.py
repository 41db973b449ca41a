"""A candidate that cheats, or that a later check refutes, teaches a failure and never a gain."""

import pytest

from kopt.kernels.status import Status
from kopt.search.knowledge.states.attribution import revoked_samples
from kopt.search.records.evaluation import FAMILY_CONTRADICTED, Evaluation
from kopt.search.records.members import Member
from support.populations import failed, passed, timed, with_value
from support.taught_runs import ON_GPU, made, start, taught, told

IMPOSSIBLE = Evaluation(status=Status.PASSED, summary="below the floor", device="cuda:0")
FAST = passed(1.0, "fast")


@pytest.mark.parametrize(
    "cheat",
    [
        made(1, failed(Status.REWARD_HACK), "aa"),
        made(1, failed(Status.QUARANTINED), "aa"),
        made(1, IMPOSSIBLE, "aa"),
        made(1, with_value(FAST, FAMILY_CONTRADICTED), "aa"),
    ],
    ids=["reward_hack", "quarantined", "impossible", "contradicted"],
)
def test_cheat_is_a_failure(cheat: Member) -> None:
    (sample,) = taught(start(), cheat)
    assert told([sample]) == [("run-1/1", ("aa",), "failed")]
    assert (sample.measured, sample.interval) == (None, None)


@pytest.mark.parametrize("later", ["full", "tie"])
def test_candidate_that_a_later_check_refutes_is_a_failure(later: str) -> None:
    refuted = made(1, FAST, "aa", **{later: failed(Status.DATA_RACE)})
    (sample,) = taught(start(), refuted)
    assert told([sample]) == [("run-1/1/refuted", ("aa",), "failed")]
    assert sample.status is Status.DATA_RACE


def test_candidate_whose_source_was_rejected_is_a_failure() -> None:
    rejected = made(1, FAST, "aa", full=FAST, objection="removed: it skips a row")
    (sample,) = taught(start(), rejected)
    assert told([sample]) == [("run-1/1/refuted", ("aa",), "failed")]
    assert sample.measured is None


def test_program_equal_to_a_refuted_one_teaches_no_gain() -> None:
    refuted = made(1, FAST, "aa", full=failed())
    same = made(2, FAST, "bb", parents=(0,))
    assert told(taught(start(), refuted, same)) == [("run-1/1/refuted", ("aa",), "failed")]


def test_what_was_built_on_a_refuted_program_teaches_nothing() -> None:
    refuted = made(1, FAST, "aa", full=failed())
    child = made(2, passed(0.5), "bb", round=2, branch="r2/b0", parents=(1,))
    assert [one.outcome for one in taught(start(), refuted, child)] == ["failed"]


def test_what_was_taught_before_the_refutation_is_revoked() -> None:
    child = made(2, passed(0.5), "bb", round=2, branch="r2/b0", parents=(1,))
    before = taught(start(), made(1, FAST, "aa"), child)
    after = taught(start(), made(1, FAST, "aa", full=failed()), child)
    assert [one.outcome for one in before] == ["gained", "gained"]
    assert revoked_samples([one.id for one in before], after) == ("run-1/1", "run-1/2")


def test_child_of_a_reward_hack_is_compared_with_the_honest_program_before() -> None:
    cheat = made(1, failed(Status.REWARD_HACK), "aa")
    child = made(2, passed(8.0), "bb", round=2, branch="r2/b0", lineage="fix", parents=(1,))
    sample = taught(start(), cheat, child)[-1]
    assert told([sample]) == [("run-1/2", ("aa", "bb"), "gained")]
    assert sample.before == "s0"


def test_technique_of_a_contradicted_parent_is_not_the_one_before() -> None:
    parent = made(1, with_value(passed(8.0), FAMILY_CONTRADICTED), "aa")
    child = made(2, passed(7.0), "bb", round=2, branch="r2/b0", parents=(1,))
    assert taught(start(), parent, child)[-1].previous is None


def test_same_program_is_taught_once_whatever_it_is_called() -> None:
    one, same = made(1, passed(8.0, "p"), "aa"), made(2, passed(8.0, "p"), "bb")
    assert told(taught(start(), one, same)) == [("run-1/1", ("aa",), "gained")]


def test_program_that_did_not_change_gains_nothing_however_it_was_measured() -> None:
    same = timed(7.0, 1.3).model_copy(update={"equivalence": "p"})
    parent = timed(9.0, 1.0).model_copy(update={"equivalence": "p"})
    (sample,) = taught(start(parent), made(1, same, "aa"), context=ON_GPU)
    assert (sample.outcome, sample.measured) == ("within_noise", 0.0)
