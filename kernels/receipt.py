"""The receipt of a promoted winner: source, binary, device, and every sample behind its speedup.

A receipt with the source beside it is all that `kopt verify` needs to compile the kernel and
measure it again. It names no path of the machine that made it, and no hidden seed. docs/receipts.md
says what it proves and what it does not.
"""

from typing import Literal

from pydantic import Field

from .bench_result import (
    BaselinePath,
    Comparison,
    DeviceState,
    Latency,
    LikeForLike,
    NoiseFloor,
    RejectedBaseline,
    Rotation,
    TimedOutputs,
)
from .check_result import CheckLevel, RaceCheck, SanitizerResult, WorkloadCheck
from .device_facts import DeviceFacts
from .plan import LaunchPlan
from .precision import Precision
from .record import Record
from .status import Status, Verdict


class RepeatedMeasurement(Record):
    """One of the measurements of a workload: a fresh allocation in a fresh worker process."""

    process: int
    """Counted from 1; each is a worker process of its own."""
    allocation: int
    """Counted from 1 in each process."""
    seed: int
    """Decided the memory layout, the order of the pairs and the resamples of the interval."""
    verdict: Verdict
    """Against the main baseline."""
    speedup: float
    """exp(median log ratio)."""
    interval: tuple[float, float]
    """95 % bootstrap interval of the speedup."""
    pairs: int
    dropped_pairs: int
    """Left out because of a throttle reason or a clock change."""
    log_ratios: tuple[float, ...]
    """ln(baseline / candidate) of every pair that counts, as measured: places 2 i and 2 i + 1 are
    one ABBA double pair. In receipts only."""
    noise_floor: NoiseFloor
    latency: Latency
    """The candidate's time with a cold L2."""
    baseline_latency: Latency
    rotation: Rotation
    timed_outputs: TimedOutputs
    state: DeviceState | None
    others: tuple[Comparison, ...] = ()
    """Further baselines timed in the same session, without their log ratios."""


class WorkloadEvidence(Record):
    """What all measurements of one workload say together."""

    workload: str
    kernel: str
    """Kernel id."""
    baseline: BaselinePath
    """The main baseline, the same in all measurements."""
    baseline_reason: str
    """Why it is the baseline, one sentence."""
    rejected: tuple[RejectedBaseline, ...] = ()
    like_for_like: LikeForLike
    measurements: tuple[RepeatedMeasurement, ...]
    speedup: float
    """Median of the measurements' speedups."""
    range: tuple[float, float]
    """Least and greatest of them."""

    @property
    def noise_threshold(self) -> float:
        """The widest noise threshold among the measurements, a log ratio."""
        return max(one.noise_floor.threshold for one in self.measurements)


class ReceiptCubin(Record):
    """One binary that was checked and timed."""

    arch: str
    defines: dict[str, int]
    workloads: tuple[str, ...]
    sha256: str


class ReceiptToolchain(Record):
    """What compiled it."""

    compiler: Literal["nvcc", "nvrtc"]
    version: str


class ReceiptCheck(Record):
    """The full check before the timing."""

    level: CheckLevel
    visible_seeds: tuple[int, ...]
    workloads: tuple[WorkloadCheck, ...]
    """With the number of hidden seeds, which are named nowhere."""
    race_check: RaceCheck | None = None
    """What the simulator said beside it; left out of receipts of before it was asked."""


class ReceiptSeal(Record):
    """Who promoted a receipt, for those who hold the key."""

    key: str
    """Names the key; every machine has another one."""
    hmac: str
    """HMAC-SHA256 under that key over the digest (tools/bench/receipt_seal.py)."""


ReceiptStanding = Literal["sealed", "reproduced", "claimed"]
"""sealed: this machine promoted it. reproduced: of another one, and measured again here. claimed:
of another one, or without a seal."""


class Receipt(Record):
    """A promoted winner. A file covers one workload; the receipts of one promotion can be joined.

    Format 1 held the source, and one file covered all workloads.
    """

    schema_: Literal["kopt.receipt/1", "kopt.receipt/2"] = Field(
        default="kopt.receipt/2", alias="schema"
    )
    status: Literal[Status.PASSED] = Status.PASSED
    digest: str = ""
    """SHA-256 over the canonical JSON of everything but itself and the seal
    (tools/bench/receipt_file.py)."""
    seal: ReceiptSeal | None = None
    """The seal of the machine that promoted it; left out of receipts that come with kopt, and None
    in one that was joined of several."""
    parts: tuple["Receipt", ...] = Field(default=(), exclude=True)
    """The receipts that it was joined of; never written into a receipt."""
    promotion: str = ""
    """Digest of all receipts of the promotion joined; empty in the joined one itself."""
    kopt_version: str
    promoted_at: str
    """UTC, ISO 8601."""
    problem: str
    problem_files: dict[str, str]
    """SHA-256 of problem.yaml, oracle.py, reference.cu and baseline.py, those that exist."""
    candidate: str
    """SHA-256 of the source."""
    source_name: str
    """File name of the candidate when it was promoted."""
    source_file: str = ""
    """Name of the source's file beside the receipt; empty in format 1."""
    source: str = Field(exclude=True)
    """Read from that file, never written into a receipt."""
    domain: tuple[str, ...] = ()
    """The workloads that the source claims, each promoted at the same time; empty in format 1."""
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The defaults of the header, with which it was built."""
    arch: str
    device: DeviceFacts
    """With driver and CUDA version."""
    toolchain: ReceiptToolchain
    precision: Precision = "ieee"
    """What the libraries' float32 products could do; left out of a receipt where it is ieee."""
    cubins: tuple[ReceiptCubin, ...]
    plans: dict[str, LaunchPlan]
    """By workload, as launched."""
    check: ReceiptCheck
    sanitizer: tuple[SanitizerResult, ...]
    """One for each covered workload; `unavailable` runs stand in it with their reason."""
    flagged: tuple[str, ...] = ()
    """What in the binaries raises scrutiny without refusing it, e.g. lines kept in L2."""
    sandbox: str | None
    """Level under which the candidate ran."""
    workloads: tuple[WorkloadEvidence, ...]
    """Every covered workload."""
    geometric_mean_speedup: float
    """Geometric mean of the workloads' speedups."""

    @property
    def read(self) -> tuple["Receipt", ...]:
        """The receipts as they were read: its parts, or itself."""
        return self.parts or (self,)

    @property
    def claimed(self) -> tuple[str, ...]:
        """The workloads that the source claims; in format 1 those that the receipt covers."""
        return self.domain or tuple(entry.workload for entry in self.workloads)

    def cubin_of(self, workload: str) -> str | None:
        """Return the SHA-256 of the cubin that serves `workload`; None if there is none."""
        return next((one.sha256 for one in self.cubins if workload in one.workloads), None)
