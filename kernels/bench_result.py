"""What the benchmark stage measured: speedups with their intervals, and all that led to them.

A speedup is baseline time / candidate time from paired replays in one process: above 1 is faster.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from .best_known import BestKnown
from .check_result import CheckLevel, CheckResult, RaceCheck
from .device_facts import DeviceFacts
from .precision import Precision
from .record import Diagnostic, Record
from .status import Provenance, Status, Verdict

LEAST_THRESHOLD = 0.003
"""No smaller log ratio counts as a difference, however quiet the device."""


def noise_threshold(median: float, half_width: float) -> float:
    """Return the least log ratio that counts as a difference above an A/A noise floor."""
    return max(LEAST_THRESHOLD, abs(median) + half_width)


class Latency(Record):
    """Device time of one call, microseconds, cold L2 unless the field says warm."""

    median_us: float
    p10_us: float | None = None
    """None, with p90 and the least, for an estimate and for nothing else: it has no spread."""
    p90_us: float | None = None
    min_us: float | None = None
    replays: int
    """0 for an estimate."""
    provenance: Literal[Provenance.MEASURED, Provenance.ESTIMATED] = Provenance.MEASURED

    @model_validator(mode="after")
    def _only_what_is_measured_has_a_spread(self) -> Self:
        is_measured = self.provenance is Provenance.MEASURED
        for part in (self.p10_us, self.p90_us, self.min_us):
            if (part is not None) != is_measured:
                raise ValueError("p10_us, p90_us and min_us: of a measured time, and of no other")
        return self

    @property
    def spread(self) -> tuple[float, float, float] | None:
        """p10, p90 and the least, microseconds; None for an estimate."""
        if self.p10_us is None or self.p90_us is None or self.min_us is None:
            return None
        return self.p10_us, self.p90_us, self.min_us


class BaselinePath(Record):
    """One way to compute the same: a library's function, or the problem's reference kernel."""

    name: str
    """e.g. flashinfer_cute, or reference."""
    pdl: bool = False
    """Whether it was launched with programmatic dependent launch."""
    library: str | None = None
    """Library and version; None for the reference kernel."""
    kernels: tuple[str, ...] = ()
    """Kernels of one call."""
    nodes_per_call: float | None = None

    @property
    def label(self) -> str:
        """How it is called in texts: `flashinfer_cute (PDL on)`, or `reference`."""
        if self.library is None:
            return self.name
        return f"{self.name} (PDL {'on' if self.pdl else 'off'})"


class LikeForLike(Record):
    """Whether candidate and baseline do the same work on the same data."""

    holds: bool
    differences: tuple[str, ...] = ()
    """Each in one sentence: another scale layout, memory allocated inside the call, …"""


class RejectedBaseline(Record):
    """A path that is not timed, and why."""

    name: str
    pdl: bool
    status: Literal["unavailable", "failed_check"]
    """unavailable: the library is missing or refuses the call on this device."""
    reason: str
    """For failed_check what kopt's own check found, e.g. output never written."""


class NoiseFloor(Record):
    """The baseline against a second capture of itself, same protocol."""

    median: float
    """Median log ratio; 0 for a perfect device."""
    half_width: float
    """Half of the 95 % interval of that median."""
    pairs: int
    cached: bool
    measured_at: str
    """UTC, ISO 8601."""

    @property
    def threshold(self) -> float:
        """Least log ratio that counts as a difference: max(0.3 %, |median| + half_width)."""
        return noise_threshold(self.median, self.half_width)


class Comparison(Record):
    """The candidate against one baseline."""

    baseline: BaselinePath
    verdict: Verdict
    speedup: float | None
    """exp(median log ratio); None where too few pairs count and where a time is impossible."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval of the speedup."""
    pairs: int = 0
    """Timed pairs behind it."""
    dropped_pairs: int = 0
    """Left out because of a throttle reason or a clock change."""
    baseline_latency: Latency | None = None
    noise_floor: NoiseFloor | None = None
    like_for_like: LikeForLike
    log_ratios: tuple[float, ...] = ()
    """ln(baseline / candidate) of every pair that counts, in the order measured: places 2 i and
    2 i + 1 are one ABBA double pair. Shown only with detail `full` and in receipts."""
    provenance: Literal[Provenance.MEASURED, Provenance.ESTIMATED] = Provenance.MEASURED


class Rotation(Record):
    """The buffer sets behind the cold times."""

    sets: int
    set_bytes: int
    over_l2: float
    """sets * set_bytes / L2 size."""

    @property
    def is_cold(self) -> bool:
        """Whether the sets together hold at least twice the L2."""
        return self.over_l2 >= 2.0


class PlainCopy(Record):
    """The fastest of several plain copy kernels of as many bytes as a call, on the same device.

    No bound: what moves its bytes better than these is faster than the copy.
    """

    read_bytes: int
    """In whole words of 16, like what is written."""
    written_bytes: int
    latency: Latency
    block: int
    """Threads of a block."""
    vectors: int
    """Words of 16 bytes a thread."""
    pdl: bool
    """Whether it was launched with programmatic dependent launch."""

    @property
    def gb_s(self) -> float:
        """1e9 bytes per second, read and written."""
        return (self.read_bytes + self.written_bytes) / self.latency.median_us / 1e3


class DeviceState(Record):
    """Clocks and the like over the whole measurement, from NVML; None where it does not say."""

    sm_mhz: tuple[int, int] | None = None
    """Least and greatest."""
    memory_mhz: tuple[int, int] | None = None
    temperature_c: tuple[int, int] | None = None
    throttle: tuple[str, ...] = ()
    other_processes: int | None = None


class TimedOutputs(Record):
    """What the outputs of timed calls were: of one replay at an unforeseeable point, and the last.

    A call among them that the gates refuse makes the result `incorrect` or `reward_hack`.
    """

    calls: int
    """Timed calls whose outputs were compared: 16 of the first replay, all of the last."""
    identical: int
    """Calls whose outputs equal the checked ones bit by bit, rows rotated."""
    within_gates: int
    """Calls that differ in bits and passed the gates: the most different ones were judged, and a
    random sample of the others."""


class BenchResult(Record):
    """The result of the benchmark stage for one candidate on one workload."""

    schema_: Literal["kopt.bench/1"] = Field(default="kopt.bench/1", alias="schema")
    status: Status
    """The check's status, or that of a fault while timing; there is no comparison unless passed."""
    verdict: Verdict | None
    """Against the main baseline; None unless passed."""
    kernel: str
    candidate: str
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    device: str
    """cuda:0, or sim for an estimate."""
    gpu: DeviceFacts | None
    """The GPU; None on sim."""
    precision: Precision = "ieee"
    """What the libraries' float32 products may do: the problem's."""
    seed: int | None = None
    """Decided the order of the pairs, the memory layout and which outputs were compared; None
    where nothing was timed."""
    comparisons: tuple[Comparison, ...] = ()
    """The main baseline first: the fastest library path that passed its check and is like for
    like, else the reference kernel."""
    rejected: tuple[RejectedBaseline, ...] = ()
    latency: Latency | None = None
    """The candidate's time with a cold L2."""
    resolution: float | None = None
    """Relative difference up to which two such estimates are not told apart; None if measured."""
    warm_us: float | None = None
    """The candidate's time over one buffer set: with a warm L2."""
    null_kernel_us: float | None = None
    """Empty kernels in the candidate's launch shape: the floor of its launches."""
    memory_floor_us: float | None = None
    """Bytes of the workload / data-sheet bandwidth (computed)."""
    achieved_gb_s: float | None = None
    """Bytes of the workload / median time, 1e9 bytes/s."""
    copy_gb_s: float | None = None
    """Copy bandwidth measured on the device, 1e9 bytes/s."""
    plain_copy: PlainCopy | None = None
    """A copy of as many bytes as the workload's; None where none was asked for or measured."""
    rotation: Rotation | None = None
    timed_outputs: TimedOutputs | None = None
    state: DeviceState | None = None
    best_known: BestKnown | None = None
    """The fastest kernel that is known besides, where it was looked for."""
    check: CheckResult
    checked: CheckLevel = "quick"
    """The level of check that stands behind the verdict; `check` may be the quick one before it."""
    race_check: RaceCheck | None = None
    """What the simulator said beside that full check; None for a quick one."""
    diagnostics: tuple[Diagnostic, ...] = ()
    elapsed_s: float

    @property
    def is_unproven(self) -> bool:
        """Whether it says `faster` after a quick check only."""
        return self.verdict is Verdict.FASTER and self.checked == "quick"

    @property
    def chosen_tune(self) -> dict[str, int]:
        """The tune values that differ from the header's defaults."""
        return self.check.chosen_tune


def without_samples(result: BenchResult) -> BenchResult:
    """Return `result` without the log ratios of single pairs."""
    comparisons = tuple(
        comparison.model_copy(update={"log_ratios": ()}) for comparison in result.comparisons
    )
    return result.model_copy(update={"comparisons": comparisons})


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
