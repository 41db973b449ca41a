"""What this machine evaluates candidates with; it measures no program of a run twice.

A program is a set of cubins with its launches: who comes second gets the times of the first. Times
are reused for the quick evaluation only: a tie is measured again because it is to be measured
again, and a winner because it is one.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import EvaluationJob, KnownMeasurement
from kopt.search.records.members import Member
from kopt.search.storage.artifacts import ArtifactStore
from kopt.tools.devices.device import Device, ManyEvaluators
from kopt.tools.devices.timer import TimingDevice

_PER_EVALUATOR = 2
"""Candidates under way for each evaluator: one there, one that is compiled or judged here."""


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


@dataclass(frozen=True)
class EvaluationSite:
    """What this machine evaluates with."""

    device: Device
    timer: TimingDevice | None
    """`device` where it is a GPU; None on sim, which measures no time."""
    settings: Settings
    artifacts: ArtifactStore
    measured: MeasuredOnce = field(default_factory=MeasuredOnce)
    """What was measured here since the process began."""
    say: Callable[[str], None] = ignore
    """Told, from any thread, what goes on besides the events of a run: what its first timing waits
    for, how far a full check is, that the leader is profiled or promoted."""

    @property
    def at_once(self) -> int:
        """How many candidates are under way: one a core, on a pool at least two an evaluator."""
        pool = self.device.evaluators if isinstance(self.device, ManyEvaluators) else 0
        return max(self.settings.jobs, _PER_EVALUATOR * pool)
