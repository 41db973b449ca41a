"""Every kernel on one device: its reference kernel and its winner against every baseline."""

from typing import Literal

from pydantic import Field

from .bench_result import BenchResult
from .device_facts import DeviceFacts
from .record import Record
from .status import Status


class BenchRow(Record):
    """One source on one workload."""

    kernel: str
    source: Literal["reference", "winner"]
    file: str
    """The source's path."""
    result: BenchResult | None
    """Without the log ratios of single pairs; None where the row failed."""
    error: str | None = None
    """What kept it from being measured: the machine's or the problem's fault."""


class BenchAllResult(Record):
    """The result of benchmarking all kernels; judges no candidate."""

    schema_: Literal["kopt.bench_all/2"] = Field(default="kopt.bench_all/2", alias="schema")
    status: Literal[Status.PASSED] = Status.PASSED
    """Every row has a status of its own."""
    device: str
    gpu: DeviceFacts
    planned: int
    """Rows of the whole table; more than there are where it was interrupted."""
    rows: tuple[BenchRow, ...]
    elapsed_s: float

    @property
    def failed(self) -> tuple[BenchRow, ...]:
        """The rows that have no result, or one that did not pass."""
        return tuple(
            row for row in self.rows if row.result is None or row.result.status != Status.PASSED
        )
