"""One process's drive of a run: what can be done to it, each in one call.

Nothing here decides what comes next: `loop.py` does for a whole search, `step.py` for one round.
"""

import time
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from kopt.config.errors import InfraError, KoptError
from kopt.kernels.status import Status

from .artifacts import write_durably
from .beam import rank, select_beam
from .evaluation_queue import QUARANTINE_AFTER, Lease
from .evaluator import Evaluation, EvaluationJob, EvaluationLevel, Evaluator
from .proposer import Member, Population, Proposal, Proposer
from .run_records import RunState, StopReason
from .store import RunStore
from .winner import pin_tune, winner_path


@dataclass(frozen=True)
class Search:
    """What a run is driven with."""

    store: RunStore
    evaluator: Evaluator
    proposer: Proposer
    start: Proposal
    """The candidate of round 0."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; read for time budgets and nothing else."""


@dataclass
class RunDrive:
    """The store's run, what drives it and the time spent so far."""

    search: Search
    _began: float = field(init=False)
    _spent_before_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.search.clock()
        self._spent_before_s = self.state().spent_s

    def state(self) -> RunState:
        """Return the run's present state."""
        return self.search.store.reader.state()

    def members(self) -> tuple[Member, ...]:
        """Return every candidate so far, by `seq`."""
        return self.search.store.reader.members()

    def spent_s(self) -> float:
        """Return the wall seconds that this run has taken, earlier sessions included."""
        return self._spent_before_s + max(0.0, self.search.clock() - self._began)

    @contextmanager
    def pausing(self) -> Generator[None]:
        """Pause the run where the user stops it or the machine cannot go on; both are raised."""
        try:
            yield
        except (KeyboardInterrupt, KoptError) as error:
            self.pause(str(error) or type(error).__name__)
            raise

    def pause(self, reason: str) -> None:
        """Leave the run so that it can be taken up again; a finished one stays as it is."""
        if not self.state().is_finished:
            self.search.store.pause(reason, self.spent_s())

    def propose(self) -> tuple[Proposal, ...]:
        """Return the candidates of the next round that are not known yet; () for no idea."""
        state, members = self.state(), self.members()
        if state.round < 0:
            return (self.search.start,)
        population = Population(
            round=state.round + 1,
            seed=state.settings.seed,
            members=members,
            beam=tuple(members[seq] for seq in state.beam),
        )
        room = state.settings.round_size
        if state.settings.budget.evaluations is not None:
            room = min(room, max(0, state.settings.budget.evaluations - len(members)))
        known = {(member.source, tuple(sorted(member.tune.items()))) for member in members}
        fresh: list[Proposal] = []
        for proposal in self.search.proposer.propose(population, room):
            key = (proposal.source, tuple(sorted(proposal.tune.items())))
            if key not in known:
                known.add(key)
                fresh.append(proposal)
        return tuple(fresh[:room])

    def select(self) -> list[int]:
        """Return who is kept of all that were evaluated, best first."""
        members = select_beam(self.members(), self.state().settings.search)
        return [member.seq for member in members]

    def limit_reached(self) -> tuple[StopReason, str] | None:
        """Return which limit of the run is reached; None while there is room for a round."""
        settings = self.state().settings
        known = len(self.members())
        if self.is_out_of_time():
            return "budget", f"{settings.budget.seconds:g} s are spent"
        if settings.budget.evaluations is not None and known >= settings.budget.evaluations:
            return "budget", f"{settings.budget.evaluations} evaluations are spent"
        if self.state().round >= settings.search.beam.refine_rounds:
            return "rounds", f"all {settings.search.beam.refine_rounds} rounds are done"
        return None

    def is_out_of_time(self) -> bool:
        """Return whether the run's time budget is spent."""
        seconds = self.state().settings.budget.seconds
        return seconds is not None and self.spent_s() >= seconds

    def finish(self) -> None:
        """Put the best to the full check, in order, until one passes; that one is the winner."""
        store, state = self.search.store, self.state()
        for seq in _finalists(self.members(), state.settings.search.beam.width):
            store.queue.add(seq, "full")
            self.evaluate("full")
            member = self.members()[seq]
            if member.is_confirmed:
                # The file first: a finished run is never touched again.
                text = pin_tune(member.source, member.tune)
                write_durably(winner_path(store.folder), text.encode())
                store.finish("budget" if state.stop_reason == "budget" else "done", seq)
                return
        store.finish("budget" if state.stop_reason == "budget" else "failed", None)

    def evaluate(self, level: EvaluationLevel) -> None:
        """Evaluate everything that is queued at `level`, or until the time is spent."""
        state = self.state()
        running: dict[Future[Evaluation], Lease] = {}
        while True:
            self._fill_slots(running, state, level)
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: running[future].candidate):
                self._record(running.pop(future), future)

    def _fill_slots(
        self, running: dict["Future[Evaluation]", Lease], state: RunState, level: EvaluationLevel
    ) -> None:
        store = self.search.store
        while len(running) < self.search.evaluator.slots:
            if level == "quick" and self.is_out_of_time():
                return
            lease = store.queue.lease_next(level)
            if lease is None:
                return
            if lease.infra_failures >= QUARANTINE_AFTER:
                store.queue.finish(lease, _quarantined(state, lease), self.spent_s())
                continue
            members = self.members()
            member = members[lease.candidate]
            job = EvaluationJob(
                id=f"{state.id}/{lease.candidate}/{level}",
                kernel=state.settings.kernel,
                source=member.source,
                source_name=member.source_name,
                tune=member.tune,
                level=level,
                arch=state.settings.arch,
                baseline=_baseline(members),
            )
            running[self.search.evaluator.submit(job)] = lease

    def _record(self, lease: Lease, future: "Future[Evaluation]") -> None:
        try:
            evaluation = future.result()
        except InfraError as error:
            self.search.store.queue.requeue(lease, str(error))
        else:
            self.search.store.queue.finish(lease, evaluation, self.spent_s())


def _finalists(members: tuple[Member, ...], width: int) -> list[int]:
    """Return who is put to the full check, best first: at most `width`, the start as the last.

    By the quick checks alone, so that an interrupted run goes through the same list again.
    """
    ranked = [member.seq for member in rank(members)]
    chosen = ranked[:width]
    return chosen if 0 in chosen or 0 not in ranked else [*chosen, 0]


def _baseline(members: tuple[Member, ...]) -> str | None:
    """Return what the run's candidates are compared with; None while none was timed."""
    speedups = (member.quick.speedup for member in members if member.quick is not None)
    return next((speedup.unit for speedup in speedups if speedup is not None), None)


def _quarantined(state: RunState, lease: Lease) -> Evaluation:
    return Evaluation(
        status=Status.QUARANTINED,
        summary=f"the machine failed {lease.infra_failures} times under this candidate",
        device=state.settings.device,
    )
