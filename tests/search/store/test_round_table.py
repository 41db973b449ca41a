"""The rows of rounds and branches: what joins a round, and whose it is."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kopt.search.records.members import Member, Proposal
from kopt.search.records.run_state import BranchPlan
from kopt.search.store.round_table import NewRound
from kopt.search.store.store import RunStore
from support.populations import SOURCE
from support.scripted_runs import new_store, start

IDEA = BranchPlan(slot="new-1", lineage="refine", parents=(0,), hypothesis={"name": "idea"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """Yield a run with its starting point and an open round of three branches."""
    with new_store(tmp_path) as opened:
        opened.rounds.open(NewRound(0, "start", (start(),)))
        opened.rounds.open(NewRound(1, "agents", branches=(IDEA,) * 3, plan=b"{}"))
        yield opened


def _written(text: str, by: str = "coder", parents: Iterable[int] = (0,)) -> Proposal:
    fields = {"proposer": by, "parents": tuple(parents), "lineage": "refine", "note": by}
    return start(f"{SOURCE}// {text}\n").model_copy(update=fields)


def _member(store: RunStore, seq: int) -> Member:
    return store.reader.members()[seq]


def test_branches_keep_the_order_of_the_plan(store: RunStore) -> None:
    branches = store.reader.branches(1)
    assert [branch.id for branch in branches] == ["r1/b0", "r1/b1", "r1/b2"]
    assert {branch.state for branch in branches} == {"open"}
    assert branches[0].hypothesis == {"name": "idea"}


def test_delivered_candidate_is_named_after_its_branch_and_queued(store: RunStore) -> None:
    assert store.rounds.deliver("r1/b2", 0, _written("a")) == 1
    assert store.rounds.deliver("r1/b2", 1, _written("b", parents=(1,))) == 2
    assert [_member(store, seq).label for seq in (0, 1, 2)] == ["0", "r1b2", "r1b2f1"]
    assert store.reader.count("quick", "queued") == 3


def test_delivering_again_adds_nothing(store: RunStore) -> None:
    for _ in range(2):
        assert store.rounds.deliver("r1/b0", 0, _written("a")) == 1
    assert len(store.reader.members()) == 2
    assert store.reader.count("quick") == 2


@pytest.mark.parametrize("arrival", [("r1/b0", "r1/b1"), ("r1/b1", "r1/b0")])
def test_source_of_two_branches_is_the_lower_ones_whoever_was_first(
    store: RunStore, arrival: tuple[str, str]
) -> None:
    for branch in arrival:
        assert store.rounds.deliver(branch, 0, _written("same", by=branch)) == 1
    owned = _member(store, 1)
    assert (owned.branch, owned.note, owned.order) == ("r1/b0", "r1/b0", (1, 0, 0, 0))


@pytest.mark.parametrize("fix_first", [True, False])
def test_source_of_a_fix_is_the_one_that_needed_no_fix(store: RunStore, fix_first: bool) -> None:
    store.rounds.deliver("r1/b0", 0, _written("broken"))
    deliveries = [("r1/b0", 1), ("r1/b2", 0)]
    for branch, attempt in deliveries if fix_first else reversed(deliveries):
        parents = (1,) if attempt else (0,)
        assert store.rounds.deliver(branch, attempt, _written("same", branch, parents)) == 2
    assert (_member(store, 2).label, _member(store, 2).parents) == ("r1b2", (0,))


def test_source_of_an_earlier_round_stays_what_it_was(store: RunStore) -> None:
    again = start().model_copy(update={"proposer": "coder", "note": "mine"})
    assert store.rounds.deliver("r1/b0", 0, again) == 0
    assert _member(store, 0).proposer == "start"


def test_order_of_candidates_does_not_depend_on_who_came_first(store: RunStore) -> None:
    store.rounds.deliver("r1/b2", 0, _written("a"))
    store.rounds.deliver("r1/b0", 0, _written("b"))
    ordered = sorted(store.reader.members(), key=lambda member: member.order)
    assert [member.label for member in ordered] == ["0", "r1b0", "r1b2"]


def test_failed_branch_says_why(store: RunStore) -> None:
    store.rounds.end_branch("r1/b1", None, "the model refused")
    branch = store.reader.branches(1)[1]
    assert (branch.state, branch.candidate, branch.why) == ("failed", None, "the model refused")


def test_reflection_is_kept_with_its_round(store: RunStore) -> None:
    store.rounds.keep_reflection(1, b'{"digest": "d"}')
    sha = store.reader.rounds()[1].reflection_sha
    assert sha is not None and store.reader.blob(sha) == b'{"digest": "d"}'
