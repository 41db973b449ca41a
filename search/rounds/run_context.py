"""What a process drives a run with: its state, what it has spent, how it is paused.

Nothing here decides what comes next: `advance.py` does.
"""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from kopt.config.errors import KoptError
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.promotion_result import PromotionResult
from kopt.search.models.errors import BudgetSpent
from kopt.search.records.evaluation import Evaluator
from kopt.search.records.members import Member, Population, Proposal, Proposer
from kopt.search.records.run_state import RoundRow, RunState, StopReason
from kopt.search.selection.beam import select_beam
from kopt.search.store.store import RunStore

from .agents import Agents
from .evaluations import Evaluations
from .main_thread import MainThread, WorkerThreads
from .memory import MemoryParts, RunMemory

T = TypeVar("T")


def no_profile(_: Member) -> ProfileResult | None:
    """Return no profile."""


def alone() -> tuple[Proposal, ...]:
    """Return that nothing stands beside the start."""
    return ()


@dataclass(frozen=True)
class Search:
    """What a run is driven with."""

    store: RunStore
    evaluator: Evaluator
    proposer: Proposer
    """Fills the rounds of a run without agents, and sweeps the leader in the end."""
    start: Proposal
    """The first candidate of round 0."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; read for time budgets and nothing else."""
    main_thread: MainThread = field(default_factory=MainThread)
    """What other threads have the driving thread do."""
    agents: Agents | None = None
    """None: no model can be asked."""
    profile: Callable[[Member], ProfileResult | None] = no_profile
    """What limits a candidate that has passed; None where that cannot be told or shall not be."""
    memory: MemoryParts | None = None
    """None: the run knows nothing of techniques and learns nothing."""
    promote: Callable[[Member], PromotionResult] | None = None
    """Measures a winner by the rule of `kopt bench --promote`; None on sim."""
    beside_start: Callable[[], tuple[Proposal, ...]] = alone
    """Returns the other candidates of round 0: kernels that agents go on from."""


@dataclass
class RunContext:
    """The run of a store, the parts that drive it and the time spent so far."""

    search: Search
    evaluations: Evaluations = field(init=False)
    memory: RunMemory = field(init=False)
    _began: float = field(init=False)
    _spent_before_s: float = field(init=False)
    _preparing_s: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._began = self.search.clock()
        self._spent_before_s = self.state().spent_s
        self.evaluations = Evaluations(self)
        self.memory = RunMemory(self, self.search.memory)

    def state(self) -> RunState:
        """Return the run's present state."""
        return self.search.store.reader.state()

    def members(self) -> tuple[Member, ...]:
        """Return every candidate so far, by `seq`."""
        return self.search.store.reader.members()

    def last_round(self) -> RoundRow | None:
        """Return the round that was begun last."""
        rounds = self.search.store.reader.rounds()
        return rounds[-1] if rounds else None

    def population(self) -> Population:
        """Return all that the next round is made from."""
        state, members = self.state(), self.members()
        return Population(
            round=state.round + 1,
            seed=state.settings.seed,
            members=members,
            beam=tuple(members[seq] for seq in state.beam),
        )

    def select(self) -> list[int]:
        """Return who is kept of all that were evaluated, best first."""
        members = select_beam(self.members(), self.state().settings.search)
        return [member.seq for member in members]

    def in_worker(self, name: str, work: Callable[[], T]) -> T:
        """Do one piece of work in a thread, so that its calls and Ctrl-C are attended to.

        Raises:
            BudgetSpent: It cannot be paid any more, or the time is spent.
            CallFailed: No model can be asked now, or with this key.
        """
        found: list[T] = []
        workers = WorkerThreads(self.search.main_thread)
        workers.start(name, lambda: found.append(work()))
        self.evaluations.drain("quick", workers)
        if not found:
            raise workers.spent or BudgetSpent(self.spent_time() or "the time is spent")
        return found[0]

    @contextmanager
    def pausing(self) -> Generator[None]:
        """Pause the run where the user stops it or the machine cannot go on; both are raised.

        However it ends, no thread writes to the run afterwards.
        """
        try:
            yield
        except (KeyboardInterrupt, KoptError) as error:
            self.search.main_thread.close()
            self.pause("Ctrl-C" if isinstance(error, KeyboardInterrupt) else str(error))
            raise
        finally:
            self.search.main_thread.close()

    def pause(self, reason: str) -> None:
        """Leave the run so that it can be taken up again; a finished one stays as it is."""
        if not self.state().is_finished:
            self.search.store.pause(reason, self.spent_s())

    def deliver(self, branch: str, attempt: int, proposal: Proposal) -> int:
        """Return the number of a branch's candidate; it joins the open round if it is new.

        Raises:
            BudgetSpent: It is new and one too many.
        """
        most = self.state().settings.budget.evaluations
        if most is not None and self.fresh([proposal]) and len(self.members()) >= most:
            raise BudgetSpent(f"{most} evaluations are spent")
        return self.search.store.rounds.deliver(branch, attempt, proposal)

    def fresh(self, proposals: Iterable[Proposal]) -> tuple[Proposal, ...]:
        """Return the proposals that the run does not know yet, each once."""
        known = {_key(member) for member in self.members()}
        unique = {_key(one): one for one in proposals}
        return tuple(one for key, one in unique.items() if key not in known)

    def room(self, wanted: int) -> int:
        """Return how many of `wanted` further candidates the budget allows."""
        most = self.state().settings.budget.evaluations
        return wanted if most is None else min(wanted, max(0, most - len(self.members())))

    def limit_reached(self) -> tuple[StopReason, str] | None:
        """Return which limit of the run is reached; None while there is room for a round."""
        settings = self.state().settings
        spent = self.spent_time()
        if spent is not None:
            return "budget", spent
        if self.room(1) == 0:
            return "budget", f"{settings.budget.evaluations} evaluations are spent"
        if self.follows_trajectories:
            return None
        rounds = settings.search.beam.refine_rounds
        if self.state().round >= rounds:
            return "rounds", f"all {rounds} rounds are done" if rounds > 1 else "its round is done"
        return None

    @property
    def follows_trajectories(self) -> bool:
        """Whether trajectories fill the rounds: they end when all of them have ended."""
        is_asked = self.state().settings.search.strategy == "maic_rl"
        return is_asked and self.search.agents is not None

    def spent_s(self) -> float:
        """Return the wall seconds that this run has taken, in earlier processes too."""
        return self._spent_before_s + max(0.0, self.search.clock() - self._began)

    def counted_s(self) -> float:
        """Return the wall seconds that the budget counts."""
        if self._preparing_s is None:
            self._preparing_s = preparing_s(self.members())
        return counted_s(self.spent_s(), self._preparing_s)

    def seconds_left(self) -> float | None:
        """Return what is left of the wall time, in seconds; None without a limit."""
        seconds = self.state().settings.budget.seconds
        return None if seconds is None else max(0.0, seconds - self.counted_s())

    def spent_time(self) -> str | None:
        """Return in words that the time of the run, or of its GPU, is spent; None if it is not."""
        budget = self.state().settings.budget
        if budget.seconds is not None and self.counted_s() >= budget.seconds:
            return f"{budget.seconds:g} s are spent"
        gpu_seconds = budget.gpu_seconds
        if gpu_seconds is not None and self.search.store.reader.gpu_seconds() >= gpu_seconds:
            return f"{gpu_seconds:g} s of the GPU are spent"
        return None


def _key(one: Proposal | Member) -> tuple[str, tuple[tuple[str, int], ...]]:
    return one.source, tuple(sorted(one.tune.items()))


def preparing_s(members: Sequence[Member]) -> float | None:
    """Return how long the starting point's evaluation took, in seconds; None until it ended."""
    start = next(iter(members), None)
    return None if start is None or start.quick is None else start.quick.elapsed_s


def counted_s(spent_s: float, preparing: float | None) -> float:
    """Return which of `spent_s` wall seconds count; none while the machine is being prepared."""
    return 0.0 if preparing is None else max(0.0, spent_s - preparing)
