"""How a promotion ended: the measurements, why it was refused, and which files were written."""

from typing import Literal

from pydantic import Field

from .check_result import CheckResult
from .device_facts import DeviceFacts
from .receipt import WorkloadEvidence
from .record import Record
from .sanitizer_result import SanitizerResult
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


class PromotionResult(Record):
    """The result of promoting one candidate over all workloads of its domain."""

    schema_: Literal["kopt.promotion/1"] = Field(default="kopt.promotion/1", alias="schema")
    status: Status
    """Of the candidate: the first that is not passed among check, sanitizer and measurements."""
    outcome: Literal["promoted", "kept_existing", "not_promoted"]
    """kept_existing: everything agreed, but a better winner is there at every workload."""
    reasons: tuple[str, ...] = ()
    """Why it was not promoted, each in one sentence."""
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
