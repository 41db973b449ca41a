"""What a self-test found: sample by sample, and how many of each kind were caught or let pass."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import Field

from kopt.kernels.check_result import CheckLevel
from kopt.kernels.record import Record
from kopt.kernels.status import Status


class SampleOutcome(StrEnum):
    """What became of one sample."""

    AS_EXPECTED = "as_expected"
    """A good sample passed, or an evil one got the status that names its flaw."""
    CAUGHT_OTHERWISE = "caught_otherwise"
    """An evil sample did not pass, but got another status than that of its flaw."""
    MISSED = "missed"
    """An evil sample passed."""
    REFUSED = "refused"
    """A good sample did not pass."""


FLAWS: dict[str, tuple[Status, ...]] = {
    "header or source": (Status.PLAN_ERROR, Status.COMPILE_ERROR, Status.REFUSED),
    "wrong result": (Status.INCORRECT, Status.UNWRITTEN_OUTPUT, Status.INPUT_MUTATED),
    "memory": (Status.OUT_OF_BOUNDS, Status.MISALIGNED, Status.UNINITIALIZED_READ),
    "race or barrier": (Status.DATA_RACE, Status.BARRIER_DIVERGENCE),
    "crash or hang": (Status.CRASH, Status.TIMEOUT, Status.LAUNCH_ERROR),
    "other": (Status.REWARD_HACK, Status.UNSUPPORTED_ON_SIM, Status.QUARANTINED),
}
"""Kinds of flaws, by the status that names them."""


class SampleResult(Record):
    """One sample: what it must get and what it got."""

    name: str
    kernel: str
    level: CheckLevel
    expected: Status
    status: Status
    outcome: SampleOutcome
    said: str
    """The first finding, in words, or what agreed."""
    elapsed_s: float

    @property
    def flaw(self) -> str | None:
        """The kind of its flaw; None for a good sample."""
        if self.expected is Status.PASSED:
            return None
        return next(flaw for flaw, statuses in FLAWS.items() if self.expected in statuses)


class SelftestResult(Record):
    """A self-test, whole or as far as it came."""

    schema_id: Literal["kopt.selftest/1"] = Field(default="kopt.selftest/1", alias="schema")
    device: str
    arch: str
    planned: int
    """Samples that say something about this device."""
    samples: tuple[SampleResult, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of samples that say nothing about this device."""
    holds: bool = True
    """Whether no evil sample passed and no good one was refused."""

    def with_samples(self, samples: Iterable[SampleResult]) -> "SelftestResult":
        """Return the same test with these samples."""
        found = tuple(samples)
        wrong = (SampleOutcome.MISSED, SampleOutcome.REFUSED)
        holds = not any(one.outcome in wrong for one in found)
        return self.model_copy(update={"samples": found, "holds": holds})


def outcome_of(expected: Status, status: Status) -> SampleOutcome:
    """Return what became of a sample that must get `expected` and got `status`."""
    if status is expected:
        return SampleOutcome.AS_EXPECTED
    if expected is Status.PASSED:
        return SampleOutcome.REFUSED
    return SampleOutcome.MISSED if status is Status.PASSED else SampleOutcome.CAUGHT_OTHERWISE
