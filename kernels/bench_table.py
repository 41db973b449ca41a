"""Every problem's own kernels against every baseline: the records behind one table."""

from typing import Literal

from pydantic import Field

from .bench_result import BenchResult
from .device_facts import DeviceFacts
from .record import Record
from .status import Status


class TableEntry(Record):
    """One kernel of ours at one workload."""

    kernel: str
    """Kernel id."""
    source: str
    """reference, or the file name of a winner."""
    result: BenchResult | None
    """None where the benchmark itself failed."""
    error: str | None = None
    """Why it did."""
    machine_failed: bool = False
    """Whether that was the machine's fault."""

    @property
    def status(self) -> Status | None:
        """How the kernel did; None where that is not known."""
        return None if self.result is None else self.result.status


class BenchTable(Record):
    """All entries, in the order of the problems and their workloads."""

    schema_: Literal["kopt.bench_table/1"] = Field(default="kopt.bench_table/1", alias="schema")
    status: Status
    """passed if every kernel was timed and passed, else the first status that is not."""
    device: str
    gpu: DeviceFacts
    entries: tuple[TableEntry, ...]
