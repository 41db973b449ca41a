"""The agents of a run as one object: each role asks a model through the client.

It keeps nothing. A model's answer is in the results; that a model could not be asked is raised, as
`CallFailed`, `BudgetSpent` or `Stopped`. With `profile: cycles_only` the agents are shown times and
nothing else of a profile.
"""

from dataclasses import dataclass, replace

from kopt.config.search_settings import SearchSettings
from kopt.search.records.evaluation import REGISTERS, Evaluation
from kopt.search.records.members import Member

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
    Documents,
    FailedCandidate,
    GaveUp,
    Learned,
    LearningView,
    RoundView,
    SoftVerdict,
    SoftView,
    StateDecision,
    StateQuestion,
    TechniqueQuestion,
    WrittenCandidate,
)


def time_only_round(view: RoundView) -> RoundView:
    """Return a round without profiles, and candidates without their resources."""
    return replace(
        view,
        members=tuple(map(_time_only, view.members)),
        documents=_without_profiles(view.documents),
    )


def time_only_task(task: BranchTask) -> BranchTask:
    """Return a branch whose parents have no profile."""
    return replace(task, documents=_without_profiles(task.documents))


def time_only_failure(failure: FailedCandidate) -> FailedCandidate:
    """Return a failure beside parents that have no profile."""
    return replace(failure, documents=_without_profiles(failure.documents))


def _without_profiles(documents: Documents) -> Documents:
    return replace(documents, profiles={})


def _time_only(member: Member) -> Member:
    quick = member.quick
    return member if quick is None else replace(member, quick=_without_registers(quick))


def _without_registers(evaluation: Evaluation) -> Evaluation:
    values = tuple(one for one in evaluation.values if one.metric != REGISTERS)
    return evaluation.model_copy(update={"values": values})


@dataclass(frozen=True)
class ModelRoles:
    """Planner, coder and combiner, fixer, reflector, learner, verifier."""

    context: AgentContext

    def plan(self, view: RoundView) -> Plan:
        """Return a hypothesis for each slot of the round, with documents on the leader."""
        if self._settings.agent == "minimal":
            return plan_nothing(view)
        shown = time_only_round(view) if self._shows_only_times else view
        return plan(self.context, self._with_documents(shown))

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return the candidate of a branch."""
        return write_candidate(
            self.context, time_only_task(task) if self._shows_only_times else task
        )

    def mend(
        self, task: BranchTask, failure: FailedCandidate, attempt: int
    ) -> WrittenCandidate | GaveUp:
        """Return a mended candidate; `attempt` is 1 for the branch's first repair."""
        shown = time_only_failure(failure) if self._shows_only_times else failure
        return mend_candidate(self.context, task, shown, attempt)

    def reflect(self, view: RoundView) -> Reflection:
        """Return what the round has taught."""
        return reflect(self.context, time_only_round(view) if self._shows_only_times else view)

    def learn(self, view: LearningView) -> Learned:
        """Return what memory should hold after a batch of results."""
        return learn(self.context, view)

    def decide_state(self, question: StateQuestion) -> StateDecision:
        """Return which of equally near states a program is in."""
        return decide_state(self.context, question)

    def propose_techniques(self, question: TechniqueQuestion) -> Learned:
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
            noted=tools.reader.notes_on(leader, profile, self.context.briefing.subject.problem),
        )

    @property
    def _settings(self) -> SearchSettings:
        return self.context.briefing.settings

    @property
    def _shows_only_times(self) -> bool:
        return self._settings.profile == "cycles_only"
