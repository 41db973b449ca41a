"""The agents of a run as one object: each role asks a model by way of the desk.

It keeps nothing. What a model says is in the answers; that a model could not be asked is raised, as
`CallFailed`, `BudgetSpent` or `Stopped`.
"""

from dataclasses import dataclass, replace

from kopt.config.search_settings import SearchSettings

from .coder import write_candidate
from .fixer import mend_candidate
from .learner import learn
from .learning_view import (
    Learned,
    LearningView,
    SoftVerdict,
    SoftView,
    StateDecision,
    StateQuestion,
    TechniqueQuestion,
)
from .means import Means
from .minimal import plan_nothing
from .planner import plan
from .plans import Plan, Reflection
from .reflector import reflect
from .state_decision import decide_state
from .technique_proposals import propose_techniques
from .time_only import time_only_failure, time_only_round, time_only_task
from .verifier import soft_verify
from .view import BranchTask, Failure, GaveUp, RoundView, Written


@dataclass(frozen=True)
class ModelRoles:
    """Planner, coder and combiner, fixer, reflector, learner, verifier."""

    means: Means

    def plan(self, view: RoundView) -> Plan:
        """Return a hypothesis for each slot of the round, with documents on the leader."""
        if self._settings.agent == "minimal":
            return plan_nothing(view)
        shown = time_only_round(view) if self._shows_only_times else view
        return plan(self.means, self._with_documents(shown))

    def write(self, task: BranchTask) -> Written | GaveUp:
        """Return the candidate of a branch."""
        return write_candidate(self.means, time_only_task(task) if self._shows_only_times else task)

    def mend(self, task: BranchTask, failure: Failure, attempt: int) -> Written | GaveUp:
        """Return a mended candidate; `attempt` is 1 for the branch's first repair."""
        shown = time_only_failure(failure) if self._shows_only_times else failure
        return mend_candidate(self.means, task, shown, attempt)

    def reflect(self, view: RoundView) -> Reflection:
        """Return what the round has taught."""
        return reflect(self.means, time_only_round(view) if self._shows_only_times else view)

    def learn(self, view: LearningView) -> Learned:
        """Return what memory should hold after a batch of results."""
        return learn(self.means, view)

    def decide_state(self, question: StateQuestion) -> StateDecision:
        """Return which of equally near states a program is in."""
        return decide_state(self.means, question)

    def propose_techniques(self, question: TechniqueQuestion) -> Learned:
        """Return techniques for a state of which memory knows none."""
        return propose_techniques(self.means, question)

    def soft_verify(self, view: SoftView) -> SoftVerdict:
        """Return whether anything speaks against a candidate that has passed every check."""
        return soft_verify(self.means, view)

    def _with_documents(self, view: RoundView) -> RoundView:
        if not view.beam:
            return view
        leader, tools = view.members[view.beam[0]], self.means.tools
        profile = view.documents.profiles.get(leader.seq)
        return replace(
            view,
            reading=tools.reader.round_documents(profile, tools.arch),
            noted=tools.reader.notes_on(leader, profile, self.means.briefing.subject.problem),
        )

    @property
    def _settings(self) -> SearchSettings:
        return self.means.briefing.settings

    @property
    def _shows_only_times(self) -> bool:
        return self._settings.profile == "cycles_only"
