"""What a review of somebody's claim found: whether it holds, why, and what the answer rests on."""

from typing import Literal

from pydantic import Field

from .bench_result import BenchResult
from .check_result import CheckResult, SanitizerResult
from .device_facts import DeviceFacts
from .record import Record
from .status import Provenance, Status

ReviewAnswer = Literal["holds", "does_not_hold", "cannot_be_told"]
ReviewedForm = Literal["candidate", "torch_extension"]


class Claim(Record):
    """What somebody says of a kernel."""

    speedup: float = Field(gt=1.0, allow_inf_nan=False)
    """Baseline time / the kernel's time."""
    against: str | None = None
    """The baseline by name; None: the fastest that does the same work."""
    is_mean: bool = False
    """Whether it is of the geometric mean over the workloads, not of each."""


class SpeedLimit(Record):
    """The most that any kernel can be faster than a baseline on one GPU.

    The baseline's time is measured. The least time is that of the memory, computed from the bytes
    of the workload and the data sheet, or of an empty kernel, whichever is longer.
    """

    gpu: str
    baseline: str
    baseline_us: float
    least_us: float
    bound: Literal["memory", "launch"]
    """What takes the least time: moving the bytes, or a launch."""
    speedup: float
    """baseline_us / least_us."""
    evidence: str
    """Where the baseline's time comes from: this review, or the receipt by its file name."""
    provenance: Literal[Provenance.COMPUTED] = Provenance.COMPUTED


class ReviewedWorkload(Record):
    """The claim at one workload."""

    workload: str
    kernel: str
    """Kernel id."""
    is_claimed: bool
    """Whether the claim is of this workload; others are timed too, and shown."""
    answer: ReviewAnswer
    reason: str
    """Why, one sentence."""
    limit: SpeedLimit | None = None
    """It is None where no baseline's time was measured."""
    bench: BenchResult | None = None
    """The measurement; None where nothing was timed."""


class MeanSpeedup(Record):
    """The geometric mean over all workloads that the header claims, against one baseline each."""

    speedup: float
    interval: tuple[float, float]
    """Geometric means of the ends of the workloads' 95 % intervals: wider than its own."""
    threshold: float
    """The widest noise threshold among them, a log ratio."""
    workloads: tuple[str, ...]


class ReviewResult(Record):
    """The answer to a claim, and everything behind it."""

    schema_: Literal["kopt.review/1"] = Field(default="kopt.review/1", alias="schema")
    answer: ReviewAnswer
    reasons: tuple[str, ...]
    """Why, one sentence each; the first decides."""
    claim: Claim
    status: Status
    """How the candidate's evaluation ended: the check's status, or what came later."""
    kernel: str
    """Kernel id of the named workload."""
    candidate: str
    """SHA-256 of the source."""
    source_name: str
    form: ReviewedForm = "candidate"
    """torch_extension: called in a process of its own; its outputs are judged, its speed is not."""
    device: str
    arch: str
    gpu: DeviceFacts | None = None
    """The GPU; None on sim."""
    reference: tuple[str, ...] = ()
    """The PyTorch file of which the problem was made, its hash, and what its import warned of."""
    check: CheckResult
    """The full check of everything that the header claims."""
    sanitizer: tuple[SanitizerResult, ...] = ()
    """compute-sanitizer, workload by workload up to a finding; on a GPU only."""
    workloads: tuple[ReviewedWorkload, ...] = ()
    mean: MeanSpeedup | None = None
    """It is None where a workload has no speedup."""
    page_path: str | None = None
    """The page in Markdown; None where none was written."""
    kopt_version: str
    elapsed_s: float
