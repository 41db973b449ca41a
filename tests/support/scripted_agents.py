"""Agents without prompts: each role asks the real desk once, and a script says what comes of it.

A source is one line that says how its evaluation ends (`reduction 2.0`, `layout wrong`), so that a
test's script is a mapping from call ids to such lines. A plan gives every slot a family by turns.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.families import FAMILIES
from kopt.kernels.status import Status
from kopt.search.agents.plans import Hypothesis, Lesson, Plan, Reflection
from kopt.search.agents.views import (
    BranchTask,
    FailedCandidate,
    GaveUp,
    LearningView,
    Objection,
    RoundView,
    SoftVerdict,
    SoftView,
    StateDecision,
    StateQuestion,
    TechniqueQuestion,
    Verdict,
    WrittenCandidate,
)
from kopt.search.knowledge.edits import AddEntry, AddNote
from kopt.search.models.call_ledger import CallLedger
from kopt.search.models.client import ModelClient
from kopt.search.models.model import Model, ModelReply, ModelRequest
from kopt.search.models.prices import load_prices
from kopt.search.models.rate_limit import RateLimit, RateSettings
from kopt.search.models.retry import RetryPolicy
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import Population, Proposal, Proposer
from kopt.search.rounds.agents import Agents
from kopt.search.rounds.main_thread import MainThread
from kopt.search.rounds.run_context import Search
from kopt.search.store.store import RunStore
from kopt.search.store.taught import MemoryUpdate
from support.model_requests import MODEL, PlayedModel, ask_for, say
from support.populations import failed, passed
from support.recorded_evaluator import RecordedEvaluator

START = "other 8.0"
NO_REPAIR = "give up"
Line = Callable[[str], str]
"""What is said to a call, by its id."""


@dataclass(frozen=True)
class ScriptedRoles:
    """Asks the desk one call a role; `write` and `mend` hand in the line that it says."""

    desk: ModelClient

    def plan(self, view: RoundView) -> Plan:
        """Return a hypothesis per slot, of the families in turn, and the reserve asked for."""
        self._ask(f"r{view.round}/plan/0")
        slots = [slot.id for slot in view.slots]
        wanted = [*slots, *[""] * view.reserve_wanted]
        parents = {slot.id: slot.parents for slot in view.slots}
        ideas = tuple(
            Hypothesis(
                slot=slot,
                family=FAMILIES[place % 8],
                name=f"idea {view.round}.{place}",
                hypothesis="it is faster",
                mechanism="fewer bytes",
                expected_gain=0.1,
                risk="none",
                evidence="none",
                parents=parents.get(slot, (0,)),
            )
            for place, slot in enumerate(wanted)
        )
        return Plan(hypotheses=ideas[: len(slots)], reserve=ideas[len(slots) :])

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return the line that the script has for the branch."""
        return self._written(f"{task.id}/coder/0")

    def mend(
        self, task: BranchTask, failure: FailedCandidate, attempt: int
    ) -> WrittenCandidate | GaveUp:
        """Return the line that the script has for the repair."""
        return self._written(f"{task.id}/fix{attempt}/0")

    def reflect(self, view: RoundView) -> Reflection:
        """Return a lesson on every candidate of the round."""
        self._ask(f"r{view.round}/reflect/0")
        own = [member.seq for member in view.members if member.round == view.round]
        lessons = tuple(Lesson(candidate=seq, text="noted") for seq in own)
        return Reflection(digest="a round", lessons=lessons, directions=(), avoid=())

    def learn(self, view: LearningView) -> MemoryUpdate:
        """Return the line that the script has, as a note on the latest sample's entry."""
        line = self._ask(f"{view.id}/update/0")
        last = view.samples[-1]
        note = AddNote(
            state=last.state,
            techniques=last.techniques,
            text=line,
            reason="scripted",
            evidence=(last.id,),
            author="model",
        )
        return MemoryUpdate(edits=(note,))

    def decide_state(self, question: StateQuestion) -> StateDecision:
        """Return the last of the rivals, which no rule takes."""
        line = self._ask(f"{question.id}/0")
        return StateDecision(question.rivals[-1].id, "model", line)

    def propose_techniques(self, question: TechniqueQuestion) -> MemoryUpdate:
        """Return the first technique that is known."""
        line = self._ask(f"{question.id}/0")
        entry = AddEntry(
            state=question.state.id,
            techniques=(next(iter(question.base.techniques)),),
            gain=0.1,
            reason=line,
            author="model",
        )
        return MemoryUpdate(edits=(entry,))

    def soft_verify(self, view: SoftView) -> SoftVerdict:
        """Return the verdict that the script's line begins with; any other line is none."""
        line = self._ask(f"{view.id}/0")
        verdicts: dict[str, Verdict] = {"reject": "reject", "again": "check_again"}
        verdict = verdicts.get(line.split()[0], "no_objection")
        if verdict == "no_objection":
            return SoftVerdict(verdict=verdict)
        finding = Objection(kind="removed", lines=(view.member.source,), text=line)
        return SoftVerdict(verdict=verdict, findings=(finding,))

    def _written(self, call: str) -> WrittenCandidate | GaveUp:
        line = self._ask(call)
        if line == NO_REPAIR:
            return GaveUp("refused", "the model refused")
        return WrittenCandidate(source=line, note=f"by {call}")

    def _ask(self, call: str) -> str:
        return self.desk.ask(ask_for(call)).text


class NoSweep:
    """A proposer without ideas."""

    def propose(self, population: Population, count: int) -> tuple[Proposal, ...]:
        """Return nothing."""
        return ()


def shape(source: str, name: str) -> Proposal:
    """Return the proposal of a source, whose first word is its family.

    Raises:
        ToolError: It is empty.
    """
    if not source:
        raise ToolError("it is empty")
    return Proposal(source=source, source_name=name, family=source.split()[0], proposer="start")


def evaluate_line(job: EvaluationJob) -> Evaluation:
    """End as the source says."""
    ending = re.sub(r"//.*", "", job.source).split()[1]
    if ending == "wrong":
        return failed(Status.INCORRECT)
    return passed(float(ending), equivalence=job.source)


def scripted_model(line: Line) -> PlayedModel:
    """Return a model that says to every call what `line` says."""

    def script(request: ModelRequest) -> ModelReply:
        return say(line(request.id), model=MODEL)

    return PlayedModel(script)


def agents_search(
    store: RunStore,
    model: Model,
    evaluate: Callable[[EvaluationJob], Evaluation] = evaluate_line,
    proposer: Proposer | None = None,
) -> Search:
    """Return a search of the run in `store` whose agents ask `model`."""
    main_thread = MainThread()
    budget = store.reader.state().settings.budget
    desk = ModelClient(
        model=model,
        ledger=CallLedger(store.log, budget),
        thread=main_thread,
        prices=load_prices(store.folder),
        rate=RateLimit(RateSettings(concurrency=8), main_thread.halt),
        halt=main_thread.halt,
        policy=RetryPolicy(tries=1, busy_s=0.0),
    )
    roles = ScriptedRoles(desk)
    return Search(
        store=store,
        evaluator=RecordedEvaluator(evaluate, slots=2),
        proposer=proposer or NoSweep(),
        start=shape(START, "k.cu"),
        main_thread=main_thread,
        agents=Agents(roles=lambda: roles, shape=shape),
    )


def labelled_state(store: RunStore) -> dict[str, object]:
    """Return all of a run that must not depend on interruptions, nor on which branch came first."""
    state, members = store.reader.state(), store.reader.members()
    names = [member.label for member in members]
    return {
        "state": (state.status, state.round, state.stop_reason, state.stop_detail),
        "beam": [names[seq] for seq in state.beam],
        "winner": None if state.winner is None else names[state.winner],
        "members": sorted(
            (m.label, m.source, m.family, [names[seq] for seq in m.parents], m.lineage, m.cost)
            for m in members
        ),
        "branches": [
            (one.id, one.slot, one.state, one.candidate and names[one.candidate], one.why)
            for one in store.reader.branches()
        ],
        "rounds": [(one.number, one.kind) for one in store.reader.rounds()],
    }
