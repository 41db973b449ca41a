"""One branch of a round: a hypothesis becomes a candidate, which is mended where it falls short.

Runs in a thread of its own and touches the store through the main thread only. It keeps no state: a
branch that was interrupted runs again from its beginning, where its answered calls come back from
the ledger and its candidates, with their evaluations, from the store.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from kopt.config.errors import ToolError
from kopt.config.search_settings import SearchSettings
from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS
from kopt.kernels.status import Status
from kopt.search.agents.views import BranchTask, FailedCandidate, WrittenCandidate
from kopt.search.records.members import Member, Proposal
from kopt.search.selection.lineages import outcome_of
from kopt.search.selection.ranking import rank

from .agents import Roles
from .run_context import RunContext
from .views import documents_of

T = TypeVar("T")
_AUTHORS = {"cross": "combiner", "combine": "combiner"}
# What no repair is paid for: a cheat, and what took the machine down.
_HOPELESS = frozenset({Status.REWARD_HACK, Status.QUARANTINED})

Fault = Literal["failed", "regressed"]


class _NoSource(Exception):
    """What was written cannot be stored as a source."""


@dataclass(frozen=True)
class Branch:
    """One branch of the open round."""

    context: RunContext
    roles: Roles
    shape: Callable[[str, str], Proposal]
    task: BranchTask

    def run(self) -> None:
        """Write, evaluate and mend until the branch has ended, and record how."""
        rounds = self.context.search.store.rounds
        self._do(lambda: rounds.start_branch(self.task.id))
        made: list[Member] = []
        try:
            why = self._work(made)
        except _NoSource as error:
            why = str(error)
        best = next(iter(rank(made)), None)
        if best is not None:
            self._do(lambda: rounds.end_branch(self.task.id, best.seq, None))
        else:
            last = made[-1].seq if made else None
            self._do(lambda: rounds.end_branch(self.task.id, last, why))

    def _work(self, made: list[Member]) -> str:
        """Add the candidates of the branch to `made`; return why it goes no further."""
        settings = self._do(lambda: self.context.state().settings.search)
        written = self.roles.write(self.task)
        has_regressed, mended = False, 0
        while isinstance(written, WrittenCandidate):
            made.append(self._evaluated(written, made))
            fault = self._fault(made[-1], settings)
            if fault == "regressed" and not has_regressed:
                has_regressed = True
            elif fault == "failed" and mended < settings.fix_attempts:
                mended += 1
            else:
                return "" if made[-1].quick is None else made[-1].quick.summary
            failure = self._failure(made[-1], fault)
            written = self.roles.mend(self.task, failure, len(made))
        return written.why

    def _evaluated(self, written: WrittenCandidate, made: list[Member]) -> Member:
        """Return the written source as a candidate that was evaluated."""
        attempt = len(made)
        label = self.task.id.replace("/", "") + (f"f{attempt}" if attempt else "")
        try:
            shaped = self.shape(written.source, f"{label}.cu")
        except ToolError as error:
            raise _NoSource(f"no source that could be compiled: {error}") from error
        proposal = shaped.model_copy(
            update={
                "proposer": "fixer" if made else _AUTHORS.get(self.task.lineage, "coder"),
                "parents": (made[-1].seq,) if made else self._parents,
                "lineage": "fix" if made else self.task.lineage,
                "note": written.note[:MAX_HYPOTHESIS_CHARACTERS] or shaped.note,
                "techniques": self.task.hypothesis.techniques,
            }
        )
        context = self.context
        seq = self._do(lambda: context.deliver(self.task.id, attempt, proposal))
        answer = self._do(lambda: context.evaluations.watch(seq))
        return context.search.main_thread.wait_for(answer)

    @property
    def _parents(self) -> tuple[int, ...]:
        """Return the parents of the first candidate: that of a retry has one."""
        seqs = tuple(one.seq for one in self.task.parents)
        return seqs[:1] if self.task.lineage == "fix" else seqs

    def _fault(self, member: Member, settings: SearchSettings) -> Fault | None:
        """Return what is wrong with an evaluated candidate, as far as a repair may help."""
        if not member.passed:
            is_hopeless = member.quick is not None and member.quick.status in _HOPELESS
            return None if is_hopeless else "failed"
        parent = next((one for one in self.task.parents if one.passed), None)
        if parent is None:
            return None
        outcome = outcome_of(member, parent, settings.min_effect)
        return "regressed" if outcome == "regression" else None

    def _failure(self, member: Member, fault: Fault) -> FailedCandidate:
        shown = (member, *self.task.parents)
        documents = self._do(lambda: documents_of(self.context, shown, self.task.parents))
        return FailedCandidate(member=member, kind=fault, documents=documents)

    def _do(self, work: Callable[[], T]) -> T:
        return self.context.search.main_thread.do(work)
