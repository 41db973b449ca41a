"""How a promotion ended: the measurements, why it was refused, and which files were written."""

from typing import Literal

from pydantic import Field

from .check_result import CheckResult, SanitizerResult
from .device_facts import DeviceFacts
from .receipt import WorkloadEvidence
from .record import Record
from .status import Status, Verdict


class PromotionAttempt(Record):
    """One measurement on the way, whatever it said."""

    workload: str
    process: int
    allocation: int
    status: Status
    verdict: Verdict | None
    """Against the main baseline; None unless passed."""
    baseline: str | None
    """Label of the main baseline."""
    speedup: float | None
    interval: tuple[float, float] | None
    noise_threshold: float | None
    """Least log ratio that counted as a difference."""


class WinnerFile(Record):
    """What became of the pair of files of one workload."""

    workload: str
    source_path: str
    receipt_path: str
    action: Literal["written", "kept_existing"]
    reason: str | None = None
    """Why the existing winner stays."""


class HeldWorkload(Record):
    """A workload at which everything measured was `faster`, in a promotion that was refused."""

    workload: str
    baseline: str
    """Label of the main baseline."""
    speedup: float
    """Median of the measurements, which are too few for a receipt or lack the other workloads."""
    measurements: int


class NarrowerDomain(Record):
    """What the header could claim instead. Nothing of it is promoted: it is to be measured anew."""

    workloads: tuple[HeldWorkload, ...]
    where: str
    """Holds for these workloads and for no other of the domain."""

    def has(self, workload: str) -> bool:
        """Return whether the workload of this name held."""
        return any(one.workload == workload for one in self.workloads)

    @property
    def words(self) -> str:
        """What has held, and what to write."""
        held = ", ".join(f"{one.workload} {one.speedup:.3f}x" for one in self.workloads)
        return (
            f"faster in every measurement so far: {held}. To promote these alone, write"
            f" `where: {self.where}` in the header and promote again: all is measured anew"
        )


class PromotionResult(Record):
    """The result of promoting one candidate over all workloads of its domain."""

    schema_: Literal["kopt.promotion/1"] = Field(default="kopt.promotion/1", alias="schema")
    status: Status
    """The candidate's status: the first that is not passed among check, sanitizer, measurements."""
    outcome: Literal["promoted", "kept_existing", "not_promoted"]
    """kept_existing: everything agreed, but a better winner is there at every workload."""
    reasons: tuple[str, ...] = ()
    """Why it was not promoted, each in one sentence."""
    narrower: NarrowerDomain | None = None
    """Where some workloads have held and others have not; None where the candidate is at fault."""
    claimed: str | None = None
    """The `where` that a run gave its winner, which had not held at other workloads; None where the
    candidate's own was put to the promotion."""
    kernel: str
    """Kernel id of the first workload of the domain."""
    domain: tuple[str, ...]
    """Workloads that the header claims."""
    candidate: str
    device: str
    gpu: DeviceFacts
    check: CheckResult
    sanitizer: tuple[SanitizerResult, ...] = ()
    attempts: tuple[PromotionAttempt, ...] = ()
    """In the order measured."""
    workloads: tuple[WorkloadEvidence, ...] = ()
    """What the measurements say together, without log ratios; empty unless they agree."""
    geometric_mean_speedup: float | None = None
    files: tuple[WinnerFile, ...] = ()
    elapsed_s: float

    @property
    def why(self) -> str:
        """How a run narrowed the claim, the reasons, and what could be claimed instead."""
        ways = () if self.narrower is None else (self.narrower.words,)
        claims: tuple[str, ...] = ()
        if self.claimed is not None:
            claims = (f"with `where: {self.claimed}`, since other workloads fell short",)
        return "; ".join((*claims, *self.reasons, *ways))
