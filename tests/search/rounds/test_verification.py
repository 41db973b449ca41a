"""Who is read before it wins: an objection passes it over, no answer changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Population, Proposal, Proposer
from kopt.search.records.run_state import EventKind, RunState
from kopt.search.reports.history import judgements
from kopt.search.rounds.advance import run_search
from kopt.search.store.store import RunStore
from support.model_requests import MODEL, PlayedModel, say
from support.populations import failed, passed
from support.scripted_agents import agents_search, evaluate_line
from support.scripted_runs import new_store

pytestmark = pytest.mark.slow  # whole runs with agents
LINES = {"r1/b0/coder/0": "reduction 4.0", "r1/b1/coder/0": "layout 5.0"}
Spoil = Callable[[ModelRequest], None]


def _run(
    store: RunStore,
    verdicts: dict[str, str],
    evaluate: Callable[[EvaluationJob], Evaluation] = evaluate_line,
    spoil: Spoil = lambda _: None,
    proposer: Proposer | None = None,
) -> tuple[RunState, list[str]]:
    """Return how a run ended and who was read; `verdicts` by name, that of all others by ''."""

    def script(request: ModelRequest) -> ModelReply:
        spoil(request)
        _, _, what = request.id.partition("/verify/")
        verdict = verdicts.get(what.split("/")[0], verdicts.get("", "fine"))
        line = verdict if what else LINES.get(request.id)
        return say(line or f"algebra wrong // {request.id}", model=MODEL)

    model = PlayedModel(script)
    state = run_search(agents_search(store, model, evaluate, proposer))
    asked = [call for call in model.asked if "/verify/" in call]
    return state, [call.split("/")[-2] for call in asked]


def _winner(store: RunStore, state: RunState) -> str:
    assert state.winner is not None
    return store.reader.members()[state.winner].label


def _levels(store: RunStore) -> list[tuple[str, str]]:
    members = store.reader.members()
    rows = store.reader.table("evaluation")
    order = sorted((row["id"], row["candidate"], row["level"]) for row in rows)
    labels = {member.seq: member.label for member in members}
    return [(labels[seq], level) for _, seq, level in order if level in ("full", "again")]


def test_finalist_without_an_objection_wins_and_is_the_only_one_read(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        state, read = _run(store, {})
        assert (_winner(store, state), read) == ("r1b0", ["r1b0"])
        (found,) = [one for one in judgements(store.reader.events()) if "verif" in one.what]
        assert (found.outcome, found.why) == ("no_objection", "")


def test_rejected_finalist_is_passed_over_and_the_lines_that_did_it_are_told(
    tmp_path: Path,
) -> None:
    with new_store(tmp_path) as store:
        state, read = _run(store, {"r1b0": "reject it skips a row"})
        assert (_winner(store, state), read) == ("r1b1", ["r1b0", "r1b1"])
        first = next(one for one in judgements(store.reader.events()) if one.outcome == "reject")
        assert "removed: reject it skips a row (`reduction 4.0`)" in first.why
        rejected = store.reader.members()[_seq(store, "r1b0")]
        assert rejected.is_refuted and rejected.objection == first.why


def test_source_is_read_once_whatever_its_tune_values(tmp_path: Path) -> None:
    class Sweep:
        """Proposes two other values for whatever leads, once."""

        def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
            leader = population.beam[0]
            return tuple(
                Proposal(
                    source=leader.source,
                    source_name=leader.source_name,
                    tune={"BLOCK": block},
                    family=leader.family,
                    proposer="sweep",
                    parents=(leader.seq,),
                )
                for block in (256, 512)
            )

    def evaluate(job: EvaluationJob) -> Evaluation:
        found = evaluate_line(job)
        size = job.tune.get("BLOCK", 0)
        return passed(4.0 - size / 1024, equivalence=f"{size}") if size else found

    with new_store(tmp_path) as store:
        state, read = _run(store, {"": "reject it skips a row"}, evaluate, proposer=Sweep())
        rejected = [one for one in store.reader.members() if one.objection]
        assert {one.source for one in rejected} == {"reduction 4.0"} and len(rejected) == 2
        assert (state.winner, len(read)) == (0, 1)


def test_start_wins_unread_where_all_others_are_rejected(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        state, read = _run(store, {"r1b0": "reject one", "r1b1": "reject the other"})
        assert (state.winner, read) == (0, ["r1b0", "r1b1"])


@pytest.mark.parametrize(("holds", "winner"), [(True, "r1b0"), (False, "r1b1")])
def test_doubtful_finalist_is_checked_once_more(tmp_path: Path, holds: bool, winner: str) -> None:
    def evaluate(job: EvaluationJob) -> Evaluation:
        return failed() if job.level == "again" and not holds else evaluate_line(job)

    with new_store(tmp_path) as store:
        state, _ = _run(store, {"r1b0": "again with small values"}, evaluate)
        assert _winner(store, state) == winner
        assert _levels(store)[:2] == [("r1b0", "full"), ("r1b0", "again")]
        assert store.reader.members()[_seq(store, "r1b0")].is_refuted is not holds


def _seq(store: RunStore, label: str) -> int:
    return next(member.seq for member in store.reader.members() if member.label == label)


@pytest.mark.parametrize("kind", ["time", "user"])
def test_without_an_answer_measurement_alone_decides_and_that_is_told(
    tmp_path: Path, kind: str
) -> None:
    def spoil(request: ModelRequest) -> None:
        if "/verify/" in request.id:
            raise CallFailed(kind, "the service is down")  # type: ignore[arg-type]  # of the table

    with new_store(tmp_path) as store:
        state, _ = _run(store, {"r1b0": "reject"}, spoil=spoil)
        assert (_winner(store, state), state.status) == ("r1b0", "done")
        (told,) = [e for e in store.reader.events() if e.kind is EventKind.SOFT_VERIFIED]
        assert told.data["outcome"] == "not_made" and "service is down" in told.data["why"]


def test_spent_time_leaves_the_finalist_unread_and_that_is_told(tmp_path: Path) -> None:
    now = [0.0]

    def evaluate(job: EvaluationJob) -> Evaluation:
        now[0] = 1_000.0 if job.level == "full" else 0.0
        return evaluate_line(job)

    with new_store(tmp_path, budget=Budget(seconds=100.0)) as store:
        model = PlayedModel(lambda request: say(LINES.get(request.id, "x wrong"), model=MODEL))
        parts = replace(agents_search(store, model, evaluate), clock=lambda: now[0])
        state = run_search(parts)
        (told,) = [e for e in store.reader.events() if e.kind is EventKind.SOFT_VERIFIED]
        assert (_winner(store, state), told.data["outcome"]) == ("r1b0", "not_made")
        assert told.data["why"] == "100 s are spent"


def test_interrupted_run_reads_nobody_twice(tmp_path: Path) -> None:
    class Interrupting:
        """Interrupts the run while the second full check is made."""

        done = False

        def __call__(self, job: EvaluationJob) -> Evaluation:
            if job.level == "full" and job.source.startswith("layout") and not self.done:
                self.done = True
                raise KeyboardInterrupt
            return evaluate_line(job)

    verdicts, evaluate = {"r1b0": "reject it skips a row"}, Interrupting()
    with new_store(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt):
            _run(store, verdicts, evaluate)
        store.resume(store.reader.state().settings)
        state, read = _run(store, verdicts, evaluate)
        assert (_winner(store, state), read) == ("r1b1", ["r1b1"])
