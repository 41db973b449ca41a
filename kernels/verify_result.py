"""Whether a receipt reproduces: the binary compiled again, the speedups measured again."""

from typing import Literal

from pydantic import Field

from .check_result import CheckResult
from .device_facts import DeviceFacts
from .receipt import ReceiptStanding
from .record import Record
from .status import Status, Verdict

Reproduction = Literal["reproduced", "not_reproduced", "other_device", "unavailable"]
"""other_device: measured, but on another model of GPU, which says nothing about the receipt.
unavailable: not measured, and not refuted by its binary; there is no GPU, or a baseline of the
receipt does not run here."""


class CubinComparison(Record):
    """The binaries of the receipt against those compiled again, from an empty cache."""

    same: bool
    """Whether all have the receipt's hashes."""
    differing: tuple[str, ...] = ()
    """Workloads whose cubin differs."""
    receipt_toolchain: str
    """e.g. nvcc 13.2.86."""
    toolchain: str

    @property
    def same_toolchain(self) -> bool:
        """Whether equal binaries are to be expected."""
        return self.receipt_toolchain == self.toolchain


class WorkloadReproduction(Record):
    """One workload, then and now."""

    workload: str
    receipt_baseline: str
    receipt_library: str | None
    """Library and version; None for the reference kernel."""
    receipt_speedup: float
    receipt_range: tuple[float, float]
    accepted_range: tuple[float, float]
    """The receipt's range, widened by the noise threshold, on another GPU by a part of the gain."""
    status: Status
    baseline: str | None = None
    library: str | None = None
    verdict: Verdict | None = None
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    holds: bool
    """Whether it is faster again and the interval meets the accepted range; not measured: False."""
    only_on_another_gpu: bool = False
    """Whether it holds only by what another GPU of the model is allowed beyond the noise."""
    reason: str | None = None
    """Why it does not hold, or what could not be measured."""


class VerifyResult(Record):
    """The result of verifying a receipt."""

    schema_: Literal["kopt.verify/1"] = Field(default="kopt.verify/1", alias="schema")
    status: Status
    """The candidate's status here, from compiling, checking and timing."""
    reproduction: Reproduction
    reasons: tuple[str, ...] = ()
    """Why it is not `reproduced`, each in one sentence."""
    notes: tuple[str, ...] = ()
    """What differs from the receipt's surroundings: driver, toolchain, libraries, kopt."""
    kernel: str
    """Kernel id of the receipt's first workload."""
    candidate: str
    receipt: str
    """Digest of the receipt."""
    standing: ReceiptStanding = "claimed"
    """What the receipt rested on before this verification."""
    receipt_gpu: str
    device: str | None = None
    """The device; None where there is none."""
    gpu: DeviceFacts | None = None
    cubins: CubinComparison | None = None
    """Cubins compared; None where the source does not compile here."""
    check: CheckResult | None = None
    """The full check; None where it was not run."""
    workloads: tuple[WorkloadReproduction, ...]
    """All of the receipt, those that were not measured too."""
    elapsed_s: float


class VerifiedReceipt(Record):
    """One receipt, with every file that holds it."""

    files: tuple[str, ...]
    """Receipt files as named or found; one lies beside the source for each workload it covers."""
    result: VerifyResult | None = None
    """The verification; None where it could not be done."""
    fault: Literal["usage", "machine"] | None = None
    """usage: no usable receipt, or its problem is not here; machine: the device failed."""
    error: str | None = None
    """What the fault is."""


class VerifyListResult(Record):
    """The result of verifying several receipts."""

    schema_: Literal["kopt.verify_list/1"] = Field(default="kopt.verify_list/1", alias="schema")
    status: Status
    """The first candidate's status that is not passed here, else `passed`."""
    planned: int
    """Receipts in all, each counted once; more than there are results where it was interrupted."""
    results: tuple[VerifiedReceipt, ...]
    elapsed_s: float

    def count(self, reproduction: Reproduction) -> int:
        """Return how many receipts ended so."""
        return sum(
            entry.result is not None and entry.result.reproduction == reproduction
            for entry in self.results
        )

    @property
    def faults(self) -> tuple[VerifiedReceipt, ...]:
        """The receipts that could not be verified."""
        return tuple(entry for entry in self.results if entry.fault is not None)
