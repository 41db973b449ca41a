"""Whether several receipts reproduce: one document, one entry for each receipt."""

from typing import Literal

from pydantic import Field

from .record import Record
from .status import Status
from .verify_result import Reproduction, VerifyResult


class VerifiedReceipt(Record):
    """One receipt, with every file that holds it."""

    files: tuple[str, ...]
    """As they were named or found; a receipt lies beside the source at each workload it covers."""
    result: VerifyResult | None = None
    """None where it could not be verified."""
    fault: Literal["usage", "machine"] | None = None
    """usage: no usable receipt, or its problem is not here; machine: the device failed."""
    error: str | None = None
    """What the fault is."""


class VerifyListResult(Record):
    """The result of verifying several receipts."""

    schema_: Literal["kopt.verify_list/1"] = Field(default="kopt.verify_list/1", alias="schema")
    status: Status
    """Of the first candidate that does not pass here, else `passed`."""
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
