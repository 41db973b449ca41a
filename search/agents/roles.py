"""The agents of a run as one object: each role asks a model through the client.

It keeps nothing. A model's answer is in the results; that a model could not be asked is raised, as
`CallFailed`, `BudgetSpent` or `Stopped`. With `profile: cycles_only` the agents are shown times and
nothing else of a profile.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from kopt.config.search_settings import SearchSettings
from kopt.search.records.evaluation import REGISTERS
from kopt.search.records.members import Member
from kopt.search.store.taught import MemoryUpdate

from .agent_context import AgentContext
from .coder import mend_candidate, write_candidate
from .learner import learn
from .planner import plan
from .plans import Plan, Reflection
from .reflector import reflect
from .rule_plans import plan_nothing
from .state_questions import decide_state, propose_techniques
from .verifier import soft_verify
from .views import (
    BranchTask,
    FailedCandidate,
    GaveUp,
    LearningView,
    RoundView,
    SoftVerdict,
    SoftView,
    StateDecision,
    StateQuestion,
    TechniqueQuestion,
    WrittenCandidate,
)

V = TypeVar("V", RoundView, BranchTask, FailedCandidate)


def _time_only(member: Member) -> Member:
    """Return a candidate without its resources."""
    quick = member.quick
    if quick is None:
        return member
    values = tuple(one for one in quick.values if one.metric != REGISTERS)
    return replace(member, quick=quick.model_copy(update={"values": values}))


@dataclass(frozen=True)
class ModelRoles:
    """Planner, coder and combiner, fixer, reflector, learner, verifier."""

    context: AgentContext

    def plan(self, view: RoundView) -> Plan:
        """Return a hypothesis for each slot of the round, with documents on the leader."""
        if self._settings.agent == "minimal":
            return plan_nothing(view)
        return plan(self.context, self._with_documents(self._round(view)))

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return the candidate of a branch."""
        return write_candidate(self.context, self._shown(task))

    def mend(
        self, task: BranchTask, failure: FailedCandidate, attempt: int
    ) -> WrittenCandidate | GaveUp:
        """Return a mended candidate; `attempt` is 1 for the branch's first repair."""
        return mend_candidate(self.context, task, self._shown(failure), attempt)

    def reflect(self, view: RoundView) -> Reflection:
        """Return what the round has taught."""
        return reflect(self.context, self._round(view))

    def learn(self, view: LearningView) -> MemoryUpdate:
        """Return what memory should hold after a batch of results."""
        return learn(self.context, view)

    def decide_state(self, question: StateQuestion) -> StateDecision:
        """Return which of equally near states a program is in."""
        return decide_state(self.context, question)

    def propose_techniques(self, question: TechniqueQuestion) -> MemoryUpdate:
        """Return techniques for a state of which memory knows none."""
        return propose_techniques(self.context, question)

    def soft_verify(self, view: SoftView) -> SoftVerdict:
        """Return whether anything speaks against a candidate that has passed every check."""
        return soft_verify(self.context, view)

    def _with_documents(self, view: RoundView) -> RoundView:
        if not view.beam:
            return view
        leader, tools = view.members[view.beam[0]], self.context.tools
        profile = view.documents.profiles.get(leader.seq)
        return replace(
            view,
            reading=tools.reader.round_documents(profile, tools.arch),
            noted=tools.reader.notes_on(leader, profile, self.context.briefing.facts.problem),
        )

    @property
    def _settings(self) -> SearchSettings:
        return self.context.briefing.settings

    def _shown(self, view: V) -> V:
        """Return what is shown of `view`: without profiles where agents are told times alone."""
        if self._settings.profile != "cycles_only":
            return view
        return replace(view, documents=replace(view.documents, profiles={}))

    def _round(self, view: RoundView) -> RoundView:
        """Return a round as it is shown: candidates have no resources, either, in that case."""
        if self._settings.profile != "cycles_only":
            return view
        return replace(self._shown(view), members=tuple(map(_time_only, view.members)))
