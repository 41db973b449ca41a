"""The seam between the rounds and the agents: who is asked for plans, sources, lessons, doubts.

`kopt.search.agents.roles` asks a model; the tests have twins of their own. Each may be called
from any thread and answers the same when it is asked the same again, because answered calls are
recorded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kopt.search.agents.plans import Plan, Reflection
from kopt.search.agents.views import (
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
from kopt.search.records.members import Proposal
from kopt.search.store.taught import MemoryUpdate


class Roles(Protocol):
    """Planner, coder and combiner, fixer, reflector, learner, verifier.

    Each raises `CallFailed`, `BudgetSpent` or `Stopped` where no answer could be had for reasons
    that have nothing to do with what a model said.
    """

    def plan(self, view: RoundView) -> Plan:
        """Return a hypothesis for each slot of the round."""
        ...

    def write(self, task: BranchTask) -> WrittenCandidate | GaveUp:
        """Return the source that follows the branch's hypothesis."""
        ...

    def mend(
        self, task: BranchTask, failure: FailedCandidate, attempt: int
    ) -> WrittenCandidate | GaveUp:
        """Return a source without the fault; `attempt` is 1 for the branch's first repair."""
        ...

    def reflect(self, view: RoundView) -> Reflection:
        """Return what the round has taught."""
        ...

    def learn(self, view: LearningView) -> MemoryUpdate:
        """Return what memory should hold after a batch of results."""
        ...

    def decide_state(self, question: StateQuestion) -> StateDecision:
        """Return which of equally near states a program is in."""
        ...

    def propose_techniques(self, question: TechniqueQuestion) -> MemoryUpdate:
        """Return techniques for a state of which memory knows none."""
        ...

    def soft_verify(self, view: SoftView) -> SoftVerdict:
        """Return whether anything speaks against a candidate that has passed every check."""
        ...


@dataclass(frozen=True)
class Agents:
    """Who writes the candidates of a run, and what their sources are read with."""

    roles: Callable[[], Roles]
    """Returns the same roles each time; called by the main thread.

    Raises SetupError or CallFailed where they cannot be asked at all: no price, no key that works.
    """
    shape: Callable[[str, str], Proposal]
    """The proposal that a source (and its file name) makes: tune defaults, family and note of its
    header. Raises ToolError for what is no source at all."""
