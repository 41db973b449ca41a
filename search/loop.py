"""The beam loop: rounds of propose, evaluate, select, until nothing is gained or left to spend.

The loop keeps nothing that is not in the store: at every step it asks the store where the run
stands and does what comes next. A new run, a run that was killed and a run that was given more
budget are therefore driven by the same code, and a run with the same seed ends the same however
often it was interrupted (time budgets excepted).
"""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.errors import InfraError, KoptError
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.status import Status

from .artifacts import write_durably
from .beam import rank, round_gain, select_beam
from .evaluator import Evaluation, EvaluationJob, Evaluator
from .proposer import Member, Population, Proposal, Proposer
from .run_records import Event, RunState, StopReason
from .store import QUARANTINE_AFTER, Lease, RunStore
from .winner import pin_tune

WINNER_FILE = "winner.cu"


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


def run_search(search: Search, on_event: Callable[[Event], None] | None = None) -> RunState:
    """Drive the run in `search.store` to its end and return its final state.

    Every finished evaluation is committed at once. A finished run is returned as it is.

    Raises:
        KeyboardInterrupt: The user stopped it; the run is paused and can be resumed.
        KoptError: This machine cannot evaluate at all; the run is paused likewise.
    """
    search.store.subscribe(on_event)
    session = _Session(search)
    try:
        while not search.store.reader.state().is_finished:
            session.step()
    except (KeyboardInterrupt, KoptError) as error:
        search.store.pause(str(error) or type(error).__name__, session.spent_s())
        raise
    return search.store.reader.state()


def winner_path(folder: Path) -> Path:
    """Return where the winner of the run in `folder` lies, once there is one."""
    return folder / WINNER_FILE


@dataclass
class _Session:
    """One process's drive of a run: the store's state and the time spent so far."""

    search: Search
    _began: float = field(init=False)
    _spent_before_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.search.clock()
        self._spent_before_s = self.search.store.reader.state().spent_s

    def spent_s(self) -> float:
        """Return the wall seconds that this run has taken, earlier sessions included."""
        return self._spent_before_s + max(0.0, self.search.clock() - self._began)

    def step(self) -> None:
        """Do the next thing: finish the open round, end the run, or open another round."""
        state = self.search.store.reader.state()
        if state.round_open:
            self._evaluate(state, "quick")
            self._close_round(state)
        elif state.stop_reason is not None:
            self._finish(state)
        else:
            self._open_round(state)

    def _open_round(self, state: RunState) -> None:
        store = self.search.store
        proposals = self._propose(state)
        if proposals:
            store.start_round(state.round + 1, proposals)
        else:
            store.close_round(state.beam, ("exhausted", "the proposer has no further candidate"))

    def _propose(self, state: RunState) -> tuple[Proposal, ...]:
        if state.round < 0:
            return (self.search.start,)
        members = self.search.store.reader.members()
        population = Population(
            round=state.round + 1,
            seed=state.settings.seed,
            members=members,
            beam=tuple(members[seq] for seq in state.beam),
        )
        room = state.settings.round_size
        if state.settings.budget.evaluations is not None:
            room = min(room, state.settings.budget.evaluations - len(members))
        known = {(member.source, tuple(sorted(member.tune.items()))) for member in members}
        fresh: list[Proposal] = []
        for proposal in self.search.proposer.propose(population, room):
            key = (proposal.source, tuple(sorted(proposal.tune.items())))
            if key not in known:
                known.add(key)
                fresh.append(proposal)
        return tuple(fresh[:room])

    def _close_round(self, state: RunState) -> None:
        members = self.search.store.reader.members()
        beam = select_beam(members, state.settings.beam_width)
        stop = self._reason_to_stop(state, members)
        self.search.store.close_round([member.seq for member in beam], stop)

    def _reason_to_stop(
        self, state: RunState, members: tuple[Member, ...]
    ) -> tuple[StopReason, str] | None:
        settings = state.settings
        if self._out_of_time(state):
            return "budget", f"{settings.budget.seconds:g} s are spent"
        if settings.budget.evaluations is not None and len(members) >= settings.budget.evaluations:
            return "budget", f"{settings.budget.evaluations} evaluations are spent"
        if state.round >= settings.rounds:
            return "rounds", f"all {settings.rounds} rounds are done"
        if state.round == 0:
            return None
        if not any(member.passed for member in members):
            return "exhausted", f"none of the first {len(members)} candidates passed"
        gain = round_gain([m for m in members if m.round < state.round], members)
        if gain < settings.early_stop_min_improvement:
            return "early_stop", (
                f"round {state.round} improved the best by {gain:.1%} in {_provenance(members)}"
                f" time, less than {settings.early_stop_min_improvement:.0%}"
            )
        return None

    def _finish(self, state: RunState) -> None:
        """Put the best to the full check, in order, until one passes; that one is the winner."""
        store = self.search.store
        for seq in _finalists(store.reader.members(), state.settings.beam_width):
            store.queue_full(seq)
            self._evaluate(state, "full")
            member = store.reader.members()[seq]
            if member.is_confirmed:
                # The file first: a finished run is never touched again.
                text = pin_tune(member.source, member.tune)
                write_durably(winner_path(store.folder), text.encode())
                store.finish("budget" if state.stop_reason == "budget" else "done", seq)
                return
        store.finish("budget" if state.stop_reason == "budget" else "failed", None)

    def _evaluate(self, state: RunState, level: CheckLevel) -> None:
        """Evaluate everything that is queued at `level`, or until the time is spent."""
        running: dict[Future[Evaluation], Lease] = {}
        while True:
            self._fill_slots(running, state, level)
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: running[future].candidate):
                self._record(running.pop(future), future)

    def _fill_slots(
        self, running: dict["Future[Evaluation]", Lease], state: RunState, level: CheckLevel
    ) -> None:
        store = self.search.store
        while len(running) < self.search.evaluator.slots:
            if level == "quick" and self._out_of_time(state):
                return
            lease = store.lease_next(level)
            if lease is None:
                return
            if lease.infra_failures >= QUARANTINE_AFTER:
                store.finish_evaluation(lease, _quarantined(state, lease), self.spent_s())
                continue
            members = store.reader.members()
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
            self.search.store.requeue(lease, str(error))
        else:
            self.search.store.finish_evaluation(lease, evaluation, self.spent_s())

    def _out_of_time(self, state: RunState) -> bool:
        seconds = state.settings.budget.seconds
        return seconds is not None and self.spent_s() >= seconds


def _finalists(members: tuple[Member, ...], width: int) -> list[int]:
    """Return who is put to the full check, best first: at most `width`, the start as the last.

    By the quick checks alone, so that an interrupted run goes through the same list again.
    """
    ranked = [member.seq for member in rank(members)]
    chosen = ranked[:width]
    return chosen if 0 in chosen or 0 not in ranked else [*chosen, 0]


def _provenance(members: tuple[Member, ...]) -> str:
    found = {
        member.quick.latency.provenance.value
        for member in members
        if member.quick is not None and member.quick.latency is not None
    }
    return " and ".join(sorted(found)) or "unknown"


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
