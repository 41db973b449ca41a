"""What memory and a run had to do with each other: each step's state, prediction and result."""

from math import exp

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.edits import Edit
from kopt.search.knowledge.policy.calibration import Calibration, calibrate
from kopt.search.knowledge.records import Outcome, Sample
from kopt.search.store.run_reader import RunReader


class MemoryStep(Record):
    """One application of techniques to a program of the run."""

    candidate: int
    """`seq` of the program after it."""
    part: str | None
    """What of it is compared, where not the whole with its parent: `fromN`, with candidate N;
    `refuted`, by a later check; else a switch that tells its techniques apart."""
    state: str
    """Id of the state of the program before."""
    techniques: tuple[str, ...]
    """Several were applied together, in this order."""
    previous: str | None
    """Technique that made the program before."""
    predicted: float | None
    """Speed after over speed before, as it was predicted; None without a prediction."""
    predicted_interval: tuple[float, float] | None
    """Where it was expected with 95 %."""
    found: float | None
    """Speed after over speed before; None if the program after does not work."""
    found_interval: tuple[float, float] | None
    """95 %; None for an estimate."""
    provenance: Provenance
    """The provenance of `found`."""
    outcome: Outcome
    status: Status
    bottleneck_after: str | None
    """The bottleneck of the program after, where it was profiled."""


class MemoryChange(Record):
    """One change that the learner made."""

    round: int
    """The round after which it was made."""
    edit: Edit


class MemoryUse(Record):
    """All of them, and what the learner made of them."""

    steps: tuple[MemoryStep, ...]
    """In the order in which they were learned from."""
    calibration: tuple[Calibration, ...]
    """How good the predictions were, over all states and then state by state."""
    changes: tuple[MemoryChange, ...]
    """What the learner changed in memory."""
    dropped: tuple[str, ...]
    """Further statements of the learner, and why they were not taken."""


def read_memory(reader: RunReader) -> MemoryUse | None:
    """Return what memory had to do with the run; None if it taught nothing."""
    samples = reader.samples()
    updates = reader.updates()
    if not samples and not updates:
        return None
    return MemoryUse(
        steps=tuple(map(_step, samples)),
        calibration=calibrate(samples),
        changes=tuple(
            MemoryChange(round=number, edit=edit)
            for number, one in updates.items()
            for edit in one.edits
        ),
        dropped=tuple(text for one in updates.values() for text in one.dropped),
    )


def _step(sample: Sample) -> MemoryStep:
    _, candidate, *part = sample.id.split("/")
    after = sample.signature_after
    return MemoryStep(
        candidate=int(candidate),
        part=part[0] if part else None,
        state=sample.state,
        techniques=sample.techniques,
        previous=sample.previous,
        predicted=_ratio(sample.predicted),
        predicted_interval=_ratios(sample.predicted_interval),
        found=_ratio(sample.measured),
        found_interval=_ratios(sample.interval),
        provenance=sample.provenance,
        outcome=sample.outcome,
        status=sample.status,
        bottleneck_after=None if after is None else after.bottleneck,
    )


def _ratio(gain: float | None) -> float | None:
    return None if gain is None else exp(gain)


def _ratios(gains: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if gains is None else (exp(gains[0]), exp(gains[1]))
