"""The evaluations of a run under way: what is queued is begun, what has ended is recorded.

While branches still write, their candidates are evaluated as they come: the machine never waits for
a model while a candidate is queued.
"""

from collections import defaultdict
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kopt.config.errors import InfraError
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluation_site import known_measurements
from kopt.search.records.evaluation import PROOF_LEVELS, Evaluation, EvaluationJob, EvaluationLevel
from kopt.search.records.members import Member
from kopt.search.records.run_state import EventKind, RunState
from kopt.search.selection.ranking import rank
from kopt.search.store.evaluation_queue import QUARANTINE_AFTER, Lease

from .main_thread import WorkerThreads

if TYPE_CHECKING:
    from .run_context import RunContext


class Evaluations:
    """The evaluations of a run in one process; used by its main thread."""

    def __init__(self, context: "RunContext") -> None:
        """Evaluate for `context`."""
        self._context = context
        self._search = context.search
        self._under_way = 0
        self._ended: list[tuple[Lease, Future[Evaluation]]] = []
        self._watchers: dict[int, list[Future[Member]]] = defaultdict(list)

    def watch(self, seq: int) -> "Future[Member]":
        """Return what will be the candidate with its quick evaluation."""
        answer: Future[Member] = Future()
        member = self._context.members()[seq]
        if member.quick is None:
            self._watchers[seq].append(answer)
        else:
            answer.set_result(member)
        return answer

    def drain(self, level: EvaluationLevel, workers: WorkerThreads | None = None) -> None:
        """Evaluate all that is queued at `level`, and what `workers` adds to it while it works.

        It ends early, and ends the waiting of the workers, where the time of the run is spent.
        What a worker raised is raised.
        """
        main_thread = self._search.main_thread
        while True:
            is_spent = level not in PROOF_LEVELS and self._context.spent_time() is not None
            if is_spent and workers is not None:
                main_thread.halt.stop()
            if not is_spent:
                self._fill_slots(level)
            is_waiting = workers is not None and workers.is_working and not is_spent
            if not self._under_way and not is_waiting:
                break
            main_thread.attend(None if level in PROOF_LEVELS else self._context.seconds_left())
            self._record_ended()
        if workers is not None:
            workers.check()

    def _fill_slots(self, level: EvaluationLevel) -> None:
        queue = self._search.store.queue
        while self._under_way < self._search.evaluator.slots:
            lease = queue.lease_next(level)
            if lease is None:
                return
            state, members = self._context.state(), self._context.members()
            if lease.infra_failures >= QUARANTINE_AFTER:
                queue.finish(lease, _quarantined(state, lease), self._context.spent_s())
                self._tell_watchers(lease)
                continue
            future = self._search.evaluator.submit(_job(state, members, lease))
            self._under_way += 1
            future.add_done_callback(partial(self._leave_in_mailbox, lease))
            if level not in PROOF_LEVELS and self._context.spent_time() is not None:
                return

    def _leave_in_mailbox(self, lease: Lease, future: "Future[Evaluation]") -> None:
        self._search.main_thread.post(partial(self._ended.append, (lease, future)))

    def _record_ended(self) -> None:
        while self._ended:
            lease, future = self._ended.pop(0)
            self._under_way -= 1
            queue = self._search.store.queue
            try:
                evaluation = future.result()
            except InfraError as error:
                queue.requeue(lease, str(error))
            else:
                is_proof = lease.level in PROOF_LEVELS
                leader = None if is_proof else self._leader(lease, evaluation)
                if queue.finish(lease, evaluation, self._context.spent_s(), leader):
                    self._tell_of_budget(lease, evaluation)
                self._tell_watchers(lease)

    def _leader(self, lease: Lease, evaluation: Evaluation) -> int | None:
        """Return the best of all candidates once `evaluation` counts, as the report ranks them."""
        members, member = self._context.members(), self._context.members()[lease.candidate]
        is_tie = lease.level == "tie"
        known = replace(member, tie=evaluation) if is_tie else replace(member, quick=evaluation)
        ranked = rank(known if one.seq == known.seq else one for one in members)
        return next((one.seq for one in ranked), None)

    def _tell_of_budget(self, lease: Lease, evaluation: Evaluation) -> None:
        """Say that a budget of wall time begins, once the starting point has been evaluated."""
        seconds = self._context.state().settings.budget.seconds
        if seconds is None or lease.candidate != 0 or lease.level != "quick":
            return
        self._search.store.log.tell(
            EventKind.BUDGET_BEGUN, preparing_s=evaluation.elapsed_s, budget_s=seconds
        )

    def _tell_watchers(self, lease: Lease) -> None:
        answers = self._watchers.pop(lease.candidate, []) if lease.level == "quick" else []
        if answers:
            member = self._context.members()[lease.candidate]
            for answer in answers:
                answer.set_result(member)


def _job(state: RunState, members: tuple[Member, ...], lease: Lease) -> EvaluationJob:
    member = members[lease.candidate]
    return EvaluationJob(
        id=f"{state.id}/{lease.candidate}/{lease.level}",
        kernel=state.settings.kernel,
        source=member.source,
        source_name=member.source_name,
        tune=member.tune,
        level=lease.level,
        arch=state.settings.arch,
        baseline=baseline_of(members),
        family=member.family,
        pairs=state.settings.search.tie_pairs if lease.level == "tie" else None,
        measured=known_measurements(members),
    )


def baseline_of(members: tuple[Member, ...]) -> str | None:
    """Return what the run's candidates are compared with; None while none was timed."""
    speedups = (member.quick.speedup for member in members if member.quick is not None)
    return next((speedup.unit for speedup in speedups if speedup is not None), None)


def _quarantined(state: RunState, lease: Lease) -> Evaluation:
    return Evaluation(
        status=Status.QUARANTINED,
        summary=f"the machine failed {lease.infra_failures} times under this candidate",
        device=state.settings.device,
    )
