"""No program is measured twice in a run: who comes second gets the times of the first.

A program is a set of cubins with its launches. Times are reused for the quick evaluation only: a
tie is measured again because it is to be measured again, and a winner because it is one.
"""

import threading
from collections.abc import Callable, Iterable

from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import EvaluationJob, KnownMeasurement
from kopt.search.records.members import Member


def known_measurements(members: Iterable[Member]) -> tuple[KnownMeasurement, ...]:
    """Return what was measured of the members that passed, each program once."""
    found: dict[str, KnownMeasurement] = {}
    for member in members:
        quick = member.quick
        if quick is None or not member.passed or quick.equivalence is None:
            continue
        artifacts = {kind: sha for kind, sha in quick.artifacts.items() if kind.startswith("bench")}
        if artifacts and quick.measured_as is None:
            known = KnownMeasurement(
                equivalence=quick.equivalence,
                candidate=member.seq,
                values=tuple(
                    value for value in quick.values if value.provenance is Provenance.MEASURED
                ),
                artifacts=artifacts,
            )
            found.setdefault(quick.equivalence, known)
    return tuple(found.values())


class MeasuredOnce:
    """What this process has measured; candidates of one program wait for the first of them."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._turns: dict[tuple[str, str], threading.Lock] = {}
        self._known: dict[tuple[str, str], KnownMeasurement] = {}

    def measure(
        self,
        job: EvaluationJob,
        equivalence: str,
        measure: Callable[[], KnownMeasurement | None],
    ) -> KnownMeasurement | None:
        """Return what is known of the program in the run of `job`, else what `measure` gives.

        None is what `measure` gives for a candidate that has failed: it says nothing about others.
        """
        key = (job.run, equivalence)
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            of_run = (one for one in job.measured if one.equivalence == equivalence)
            known = self._known.get(key) or next(of_run, None) or measure()
            if known is not None:
                self._known[key] = known
            return known
