"""Runs that follow a first one which ended in a finding that a closer look may clear or explain.

Three findings may be cleared. A load of shared memory that nothing has written is a fault only if
what it found is used: the run is repeated with other bytes in those places, and outputs that are
the same for all of them do not rest on any. A load that meets atomic operations is no race if one
of them on the same address checks it again: a run of its own learns which loads do. A block that
spins on what another block must write is run with the others resident beside it. What stays a race
is run once more with an eye on its place, for the line of the earlier access.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kopt.kernels.status import Status
from kopt.tools.devices.device import Arrays, ExecutionOutcome

from .job_file import RunMode, Watched

FILLERS = (0xFF, 0x00, 0x55, 0xD5)
"""NaN and -1, nothing, large and positive, large and negative in every format."""

_RECHECKING = re.compile(r"\batomic(CAS|Min|Max|And|Or)\b")


@dataclass(frozen=True)
class Look:
    """What one run found, and what only another run can tell."""

    outcome: ExecutionOutcome
    reads_unwritten_shared: bool = False
    """It ended with a load of shared memory that nothing has written."""
    spins: bool = False
    """A block waits for one that had not started."""
    rechecked: tuple[int, ...] = ()
    """Loads that atomic operations check again, of a run that learns."""
    race: Watched | None = None
    """Where it found a race of two accesses."""


@dataclass
class SecondLooks:
    """What is known of each program, so that its next execution begins with it."""

    known: dict[str, RunMode] = field(default_factory=dict[str, RunMode])

    def settle(
        self, key: str, source: str, workers: int, run: Callable[[RunMode], Look]
    ) -> ExecutionOutcome:
        """Return the outcome of the last run that was needed.

        Args:
            key: Of the program.
            source: The candidate's.
            workers: Processes of a first run.
            run: Executes the plan once.
        """
        mode = replace(self.known.get(key, RunMode(workers)), workers=workers)
        if mode.together or mode.rechecked:
            mode = replace(mode, workers=1)
        look = run(mode)
        if look.outcome.status is Status.DATA_RACE and mode.workers > 1:
            # Processes see each other's stores at any time, also those of equal values. One process
            # decides, and says the same each time.
            mode = replace(mode, workers=1)
            look = run(mode)
        if look.spins and not mode.together:
            mode = replace(mode, workers=1, together=True)
            look = run(mode)
        if look.outcome.status is Status.DATA_RACE and _RECHECKING.search(source):
            learned = run(replace(mode, learns=True)).rechecked
            if not set(learned) <= set(mode.rechecked):
                mode = replace(mode, rechecked=tuple({*learned, *mode.rechecked}))
                look = run(mode)
        self.known[key] = mode
        if look.reads_unwritten_shared:
            return _by_use(look, mode, run)
        if look.race is not None:
            return _both_sides(look, mode, run)
        return look.outcome


def _both_sides(first: Look, mode: RunMode, run: Callable[[RunMode], Look]) -> ExecutionOutcome:
    """Return the race with its earlier access where a run that watches for it finds the same."""
    watched = run(replace(mode, watched=first.race))
    return watched.outcome if watched.race == first.race else first.outcome


def _by_use(first: Look, mode: RunMode, run: Callable[[RunMode], Look]) -> ExecutionOutcome:
    """Return the outcome that all fillers give, or that of `first` if they do not agree."""
    kept: ExecutionOutcome | None = None
    for filler in FILLERS:
        outcome = run(replace(mode, filler=filler)).outcome
        if outcome.status is not Status.PASSED:
            return first.outcome
        if kept is not None and not _same(kept.outputs, outcome.outputs):
            return first.outcome
        kept = outcome
    return first.outcome if kept is None else kept


def _same(one: Arrays, other: Arrays) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in one)
