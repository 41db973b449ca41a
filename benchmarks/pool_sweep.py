"""`bench_pool.py` has the same candidates evaluated here on some GPUs, several at a time.

An evaluation is what a search makes of a swept value: compile, quick check, 100 pairs against the
baseline, by the code that `kopt run` calls. None takes times over from another one. Sources differ
by a comment from row to row, so that each row compiles as the first one does.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from kopt.config.errors import InfraError, SetupError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluate_job import evaluate_job
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.tools.pytorch.generated import generated_kernels

MOST_TRIES = 5


@dataclass(frozen=True)
class SweepPlace:
    """One device of a row."""

    site: EvaluationSite
    number: int
    """The number of the device, from 0."""


@dataclass(frozen=True)
class SweptCandidate:
    """One evaluation that has ended."""

    candidate: int
    found: Evaluation
    place: int
    began_s: float
    """When it began, in seconds of the monotonic clock, as is its end."""
    ended_s: float


@dataclass
class SweepOutcome:
    """What a sweep came to."""

    wanted: int
    took_s: float = 0.0
    done: list[SweptCandidate] = field(default_factory=list[SweptCandidate])
    repeated: int = 0
    """How many evaluations the machine failed under, so that they were begun anew."""

    @property
    def lost(self) -> int:
        """How many candidates have no result."""
        return self.wanted - len({one.candidate for one in self.done})

    @property
    def twice(self) -> int:
        """How many results came beyond the first of a candidate."""
        return len(self.done) - len({one.candidate for one in self.done})


Choice = tuple[str, dict[str, int]]
"""A source and its tune values."""


def sweep_choices(kernel: str, arch: str, settings: Settings) -> list[Choice]:
    """Return what a search without models sweeps: kernels that kopt writes, all their values.

    In an order that is always the same and that mixes them.

    Raises:
        SetupError: kopt writes none for this kernel.
    """
    problem, workload = find_kernel(kernel, settings.problems)
    kernels = generated_kernels(problem, arch)
    if kernels is None:
        raise SetupError(f"kopt writes no kernels for {kernel}: name another one")
    sets = [(), *((one,) for one in kernels.techniques), kernels.techniques]
    found = [
        (source, dict(choice))
        for source in dict.fromkeys(map(kernels.source, sets))
        for choice in Case(problem, workload, Candidate(source)).choices
    ]
    random.Random(0).shuffle(found)
    return found


def sweep_jobs(
    choices: Sequence[Choice], count: int, where: tuple[str, str, str]
) -> list[EvaluationJob]:
    """Return `count` evaluations, which go through the choices again and again.

    Args:
        choices: Sources and values.
        count: How many.
        where: The kernel, the target, and the name of the row.
    """
    kernel, arch, row = where
    return [
        EvaluationJob(
            id=f"{row}-{number}/{number}/quick",  # a run each: no time is taken over
            kernel=kernel,
            source=f"{source}// {row}\n",
            source_name="swept.cu",
            tune=tune,
            level="quick",
            arch=arch,
        )
        for number, (source, tune) in zip(range(count), _again_and_again(choices), strict=False)
    ]


def _again_and_again(choices: Sequence[Choice]) -> Iterator[Choice]:
    while True:
        yield from choices


class PoolSweep:
    """A sweep that evaluates its jobs from several threads."""

    def __init__(
        self, jobs: Sequence[EvaluationJob], at: int = 0, then: Callable[[], None] | None = None
    ) -> None:
        """Say what to evaluate, nothing yet; `then` is called once when `at` are done."""
        self._jobs, self._at, self._then = jobs, at, then
        self._turn = threading.Lock()  # of the outcome
        self._outcome = SweepOutcome(wanted=len(jobs))

    def run(self, places: Sequence[SweepPlace], under_way: int) -> SweepOutcome:
        """Evaluate all, `under_way` at a time at each place.

        Raises:
            KoptError: This machine cannot evaluate.
        """
        free: SimpleQueue[SweepPlace] = SimpleQueue()
        for _ in range(under_way):
            for place in places:
                free.put(place)
        began = time.monotonic()
        threads = ThreadPoolExecutor(under_way * len(places))
        try:
            list(threads.map(partial(self._evaluate, free), self._jobs))
        finally:
            threads.shutdown(cancel_futures=True)
        self._outcome.took_s = time.monotonic() - began
        return self._outcome

    def _evaluate(self, free: "SimpleQueue[SweepPlace]", job: EvaluationJob) -> None:
        for _ in range(MOST_TRIES):
            place = free.get()
            began = time.monotonic()
            try:
                found = evaluate_job(job, place.site)
            except InfraError:
                with self._turn:
                    self._outcome.repeated += 1
                continue
            finally:
                free.put(place)
            ended = time.monotonic()
            done = SweptCandidate(job.candidate, found, place.number, began, ended)
            with self._turn:
                self._outcome.done.append(done)
                is_time = self._then is not None and len(self._outcome.done) == self._at
            if is_time and self._then is not None:
                self._then()
            return


def first_after_s(outcome: SweepOutcome, place: int, at_s: float) -> float | None:
    """Return how long after a moment a device had finished an evaluation begun since."""
    later = [one.ended_s for one in outcome.done if one.place == place and one.began_s >= at_s]
    return min(later, default=at_s) - at_s if later else None
