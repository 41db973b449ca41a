"""One table of several candidates, or of choices of tune values, timed or profiled alike."""

from typing import Literal

from pydantic import Field

from .best_known import BestKnown
from .profile_result import ChoiceProfile
from .record import Record
from .status import Status, Verdict


class TableRow(ChoiceProfile):
    """One file with one choice of tune values."""

    file: str
    """Its path or address as the caller gave it; "" for a text."""
    set_by_variant: tuple[str, ...] = ()
    """Names in `tune` whose values the workload's variant sets, whatever is asked for."""
    verdict: Verdict | None = None
    """Against the library, of a benchmark on a GPU after a quick check; None without one."""
    speedup: float | None = None
    """Baseline time / candidate time; None unless both were measured."""
    interval: tuple[float, float] | None = None
    """95 % interval of the speedup."""


class ChoiceTable(Record):
    """The rows, the fastest first; those that did not pass come last."""

    schema_: Literal["kopt.choice_table/1"] = Field(default="kopt.choice_table/1", alias="schema")
    tool: Literal["benchmark", "profile"]
    """benchmark: each row was checked at level quick. profile: no value was checked."""
    status: Status
    """passed if one row did, else that of the first."""
    kernel: str
    arch: str
    gpu: str
    """The GPU that measured, or whose data sheet the estimates stand on."""
    device: str
    """sim, or the one that measured."""
    baseline: str | None = None
    """What speedups are against; the reference kernel on sim."""
    baseline_us: float | None = None
    best_known: BestKnown | None = None
    """The fastest kernel that is known besides; of a benchmark alone."""
    rows: tuple[TableRow, ...]

    @property
    def tied_with_first(self) -> int:
        """The number of further rows whose estimates are too near the first's to be told apart."""
        first, *rest = self.rows
        if first.measured_us is not None or first.estimated_us is None:
            return 0
        limit = first.estimated_us * (1.0 + (first.resolution or 0.0))
        return sum(one.estimated_us is not None and one.estimated_us <= limit for one in rest)
