"""What follows a search: the merge, the sweep of the leader, the full check, the promotion."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Member, Population, Proposal
from kopt.search.records.run_state import EventKind, RunState
from kopt.search.rounds.advance import run_search
from kopt.search.store.store import RunStore
from kopt.search.store.winner import winner_path
from support.bench_results import H100, check
from support.populations import failed, timed
from support.scripted_agents import agents_search, evaluate_line, scripted_model
from support.scripted_runs import new_store

pytestmark = pytest.mark.slow  # whole runs with agents
LINES = {
    "r1/b0/coder/0": "reduction 4.0",
    "r1/b1/coder/0": "layout 5.0",
}


def _kinds(store: RunStore) -> list[str]:
    return [one.kind for one in store.reader.rounds()]


def _told(store: RunStore, kind: EventKind) -> list[dict[str, object]]:
    return [event.data for event in store.reader.events() if event.kind is kind]


@pytest.mark.parametrize(
    ("merge", "kept", "winner"),
    [
        ("reduction 3.0", True, "r3b0"),
        ("reduction 7.0", False, "r1b0"),
        ("layout wrong // all", None, "r1b0"),
    ],
)
def test_merge_wins_only_if_it_is_faster(
    tmp_path: Path, merge: str, kept: bool | None, winner: str
) -> None:
    lines = LINES | {"r3/b0/coder/0": merge}
    model = scripted_model(lambda call: lines.get(call, f"algebra wrong // {call}"))
    with new_store(tmp_path) as store:
        state = run_search(agents_search(store, model))
        members = store.reader.members()
        assert _kinds(store) == ["start", "agents", "agents", "combine"]
        assert state.winner is not None and members[state.winner].label == winner
        merged = next(member for member in members if member.label == "r3b0")
        assert (merged.lineage, merged.proposer) == ("combine", "combiner")
        assert [members[seq].label for seq in merged.parents] == ["r1b0", "r1b1"]
        if kept is not None:
            assert [event["kept"] for event in _told(store, EventKind.COMBINED)] == [kept]


def test_leader_of_the_agents_is_swept_before_it_is_proven(tmp_path: Path) -> None:
    class Sweep:
        """Proposes one other value of whatever leads, once."""

        def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
            leader = population.beam[0]
            return (
                Proposal(
                    source=leader.source,
                    source_name=leader.source_name,
                    tune={"BLOCK": 512},
                    family=leader.family,
                    proposer="sweep",
                    parents=(leader.seq,),
                ),
            )

    def evaluate(job: EvaluationJob) -> Evaluation:
        found = evaluate_line(job)
        if not job.tune or not found.latency:
            return found
        return evaluate_line(job.model_copy(update={"source": "reduction 2.0", "tune": {}}))

    source = "reduction 4.0 /* kopt: 1\ntune: {BLOCK: [256, 512]}\n*/"
    lines = LINES | {"r1/b0/coder/0": source}
    model = scripted_model(lambda call: lines.get(call, f"algebra wrong // {call}"))
    with new_store(tmp_path) as store:
        state = run_search(agents_search(store, model, evaluate, Sweep()))
        assert state.winner is not None
        winner = store.reader.members()[state.winner]
        assert _kinds(store)[-1] == "tune"
        assert (winner.source, winner.tune) == (source, {"BLOCK": 512})


SPEEDUPS = {"other": 1.0, "reduction": 1.5, "layout": 1.3}


def _on_a_gpu(job: EvaluationJob) -> Evaluation:
    family, ending = job.source.split()[:2]
    return failed() if ending == "wrong" else timed(1.0, SPEEDUPS[family])


class Promotions:
    """Promotes by a table of outcomes, and remembers who was asked for."""

    def __init__(self, claimed: str | None = None, **outcomes: str) -> None:
        """Answer by family."""
        self.asked: list[str] = []
        self._claimed, self._outcomes = claimed, outcomes

    def __call__(self, member: Member) -> PromotionResult:
        """Return how the promotion of `member` ends."""
        self.asked.append(member.family)
        outcome = self._outcomes[member.family]
        if outcome == "refused":
            raise ToolError("the winner there is damaged")
        return PromotionResult(
            status=Status.PASSED,
            outcome=outcome,  # type: ignore[arg-type]  # of a test's table
            reasons=("it was not faster in one process",) if outcome == "not_promoted" else (),
            kernel="made_up_b8",
            domain=("b8",),
            candidate="c" * 64,
            claimed=self._claimed,
            device="cuda:0",
            gpu=H100,
            check=check(),
            elapsed_s=1.0,
        )


def _promoted(store: RunStore, promotions: Promotions, **lines: str) -> RunState:
    known = LINES | lines
    model = scripted_model(lambda call: known.get(call, f"layout wrong // {call}"))
    parts = agents_search(store, model, _on_a_gpu)
    return run_search(replace(parts, promote=promotions))


def _winner(store: RunStore, state: RunState) -> str:
    assert state.winner is not None
    return store.reader.members()[state.winner].family


@pytest.mark.parametrize("outcome", ["promoted", "kept_existing"])
def test_winner_is_promoted_by_the_rule_of_the_benchmark(tmp_path: Path, outcome: str) -> None:
    promotions = Promotions(reduction=outcome)
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = _promoted(store, promotions)
        assert (_winner(store, state), promotions.asked) == ("reduction", ["reduction"])
        assert [one["outcome"] for one in _told(store, EventKind.PROMOTED)] == [outcome]
        assert winner_path(store.folder).is_file()


@pytest.mark.parametrize(("outcome", "is_claimed"), [("promoted", True), ("not_promoted", False)])
def test_winner_claims_the_workloads_that_it_was_promoted_for(
    tmp_path: Path, outcome: str, is_claimed: bool
) -> None:
    source = "reduction 4.0 /* kopt: 1\nlaunch: []\n*/"
    promotions = Promotions("B <= 8", reduction=outcome, layout="not_promoted")
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        _promoted(store, promotions, **{"r1/b0/coder/0": source})
        assert ('where: "B <= 8"' in winner_path(store.folder).read_text()) is is_claimed
        assert "with `where: B <= 8`" in str(_told(store, EventKind.PROMOTED)[0]["why"])


def test_next_best_is_promoted_where_the_best_is_not(tmp_path: Path) -> None:
    promotions = Promotions(reduction="not_promoted", layout="promoted")
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = _promoted(store, promotions)
        assert (_winner(store, state), promotions.asked) == ("layout", ["reduction", "layout"])


def test_best_stays_the_winner_where_nobody_is_promoted(tmp_path: Path) -> None:
    promotions = Promotions(reduction="not_promoted", layout="not_promoted")
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = _promoted(store, promotions)
        assert _winner(store, state) == "reduction"
        why = "it was not faster in one process"
        assert [one["why"] for one in _told(store, EventKind.PROMOTED)] == [why, why]


def test_winner_in_the_way_ends_the_run_with_the_best_and_says_so(tmp_path: Path) -> None:
    promotions = Promotions(reduction="refused")
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = _promoted(store, promotions)
        assert (_winner(store, state), promotions.asked) == ("reduction", ["reduction"])
        assert _told(store, EventKind.PROMOTED)[0]["why"] == "the winner there is damaged"


def test_promotion_that_was_interrupted_is_made_once(tmp_path: Path) -> None:
    class Interrupted(Promotions):
        def __call__(self, member: Member) -> PromotionResult:
            if not self.asked:
                self.asked.append("interrupted")
                raise KeyboardInterrupt
            return super().__call__(member)

    promotions = Interrupted(reduction="not_promoted", layout="promoted")
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        with pytest.raises(KeyboardInterrupt):
            _promoted(store, promotions)
        store.resume(store.reader.state().settings)
        assert _winner(store, _promoted(store, promotions)) == "layout"
        assert promotions.asked == ["interrupted", "reduction", "layout"]


def test_start_is_not_worth_a_promotion(tmp_path: Path) -> None:
    promotions = Promotions()
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        model = scripted_model(lambda call: f"layout wrong // {call}")
        run_search(replace(agents_search(store, model, _on_a_gpu), promote=promotions))
        assert promotions.asked == []
