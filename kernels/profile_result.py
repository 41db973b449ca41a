"""What limits one candidate: facts, counts, floors, estimate; on a GPU also times and counters."""

from typing import Literal

from pydantic import Field

from .bench_result import Latency, Rotation
from .compile_result import KernelResources, Occupancy
from .counters import ExecutionCounters, HardwareCounters
from .device_facts import DeviceFacts
from .plan import Dim3
from .record import Diagnostic, Record
from .roofline import ByteModel, Roofline
from .status import Provenance, Status
from .time_estimate import PartName, TimeEstimate

SuspectName = Literal[
    "memory_bandwidth",
    "l2_bandwidth",
    "launch_latency",
    "memory_latency",
    "instruction_issue",
    "code_fetch",
    "several_launches",
    "uncoalesced_access",
    "repeated_reads",
    "narrow_access",
    "spills",
    "low_occupancy",
    "few_blocks",
    "many_blocks",
    "barriers",
    "bank_conflicts",
    "cluster_exchange",
    "trigger_latency",
]

LIMITS: frozenset[SuspectName] = frozenset(
    ("memory_bandwidth", "l2_bandwidth", "launch_latency", "memory_latency", "instruction_issue")
)
"""Suspects that any kernel has to some degree."""

BottleneckName = Literal[
    "launch_bound",
    "memory_bound",
    "l2_bound",
    "l1_bound",
    "compute_bound",
    "occupancy_limited",
    "latency_bound",
]
"""docs/profile.md has the rule and the threshold of each."""

BufferRole = Literal["in", "out", "inout", "scratch"]


class TensorTraffic(Record):
    """The bytes of one buffer: what the definition needs against what the candidate asked for."""

    name: str
    role: BufferRole
    needed_read_bytes: int
    needed_written_bytes: int
    load_bytes: int | None
    """Bytes loaded; None, like the following, if nothing was counted."""
    store_bytes: int | None
    sectors_per_request: float | None
    ideal_sectors_per_request: float | None


class LaunchProfile(Record):
    """The static facts of one launch."""

    kernel: str
    grid: Dim3
    block: Dim3
    dynamic_smem_bytes: int
    resources: KernelResources
    """Registers, spills, shared memory, instruction mix."""
    occupancy: Occupancy
    """Theoretical, with what limits it."""


class Suspect(Record):
    """One thing that may hold the candidate back. A suspicion: no time was measured."""

    name: SuspectName
    statement: str
    """One sentence for people."""
    evidence: tuple[str, ...]
    """The numbers behind it."""
    gain_us: float
    """By how much the estimate falls when only this is taken away."""
    line: int | None = None
    """Line of the candidate, from 1, where most of it is; None where none is known."""
    families: tuple[str, ...] = ()
    """Strategy families that address it."""
    provenance: Literal[Provenance.ESTIMATED] = Provenance.ESTIMATED

    @property
    def is_limit(self) -> bool:
        """Whether it is a limit of the machine, which can be neared but not taken away."""
        return self.name in LIMITS


class MeasuredTime(Record):
    """The time of one call on a GPU from a short session; a comparison is `kopt bench`'s."""

    device: str
    """e.g. cuda:0."""
    gpu: DeviceFacts
    latency: Latency
    """Cold L2."""
    null_kernel_us: float
    """Empty kernels in the same launch shapes, timed beside it: the floor of its launches."""
    above_null_us: float
    """latency.median_us - null_kernel_us: what code can change."""
    achieved_gb_s: float
    """Bytes of the byte model / median time, 1e9 bytes/s: re-reads do not make it larger."""
    roofline_fraction: float
    """The largest of the floors for bytes, for operations and for one empty launch / median time,
    0 to 1."""
    copy_gb_s: float
    """Copy bandwidth measured on the device, 1e9 bytes/s, reads and writes counted."""
    copy_fraction: float
    """achieved_gb_s / copy_gb_s; above 1 only where L2 is warm."""
    rotation: Rotation
    provenance: Literal[Provenance.MEASURED] = Provenance.MEASURED


class Bottleneck(Record):
    """What holds the candidate back most, by fixed rules (docs/profile.md)."""

    name: BottleneckName
    statement: str
    """One sentence for people: what it means."""
    facts: tuple[str, ...]
    """The two or three numbers that say so, each with where it comes from."""
    families: tuple[str, ...] = ()
    """Strategy families that address it."""
    provenance: Literal[Provenance.MEASURED, Provenance.ESTIMATED]
    """estimated as soon as one of the deciding numbers is."""


class MachineExcerpt(Record):
    """A part of the machine code of one function."""

    function: str
    arch: str
    about: str
    """Why this part: a line of the source, or the hottest block with its share."""
    instructions: int
    """Instructions of the whole function."""
    left_out: int
    """Instructions of the part that are not among `rows`."""
    rows: tuple[str, ...]
    """Address, line of the source (L31), instruction, scoreboards that it waits for, sets with its
    result and frees once its operands are read, clocks before the next; `...` where some miss."""


class ProfileResult(Record):
    """The profile of one candidate for one workload on one architecture."""

    schema_: Literal["kopt.profile/1"] = Field(default="kopt.profile/1", alias="schema")
    status: Status
    """passed; that of the compile stage; or that of the execution that should have counted."""
    kernel: str
    """Kernel id."""
    candidate: str
    chosen_tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The tune values that differ from the header's defaults."""
    arch: str
    gpu: str
    """Data sheet, or device, that the floors and the estimate stand on."""
    byte_model: ByteModel
    roofline: Roofline
    launches: tuple[LaunchProfile, ...] = ()
    device: str | None = None
    """What counted the accesses; None if nothing did. `measured` names the GPU."""
    sandbox: str | None = None
    """Level under which it did."""
    counters: ExecutionCounters | None = None
    """Counted accesses; None if no device was given, or the candidate does not run on it."""
    traffic: tuple[TensorTraffic, ...] = ()
    """Every tensor in call order, then scratch."""
    estimate: TimeEstimate | None = None
    """Estimated time; None unless the candidate compiled."""
    floor_fraction: float | None = None
    """`roofline.floor_us` / estimated time, 0 to 1: estimated as well."""
    suspects: tuple[Suspect, ...] = ()
    """The main one first."""
    measured: MeasuredTime | None = None
    """Measured time; None without a GPU, or where the candidate cannot be timed."""
    hardware: HardwareCounters | None = None
    """The GPU's counters, or why they are unavailable; None if they were not asked for."""
    bottleneck: Bottleneck | None = None
    """What limits the candidate; None unless it compiled."""
    machine_code: MachineExcerpt | None = None
    """The part of the machine code that was asked for."""
    diagnostics: tuple[Diagnostic, ...] = ()


class ChoiceProfile(Record):
    """One choice of tune values. The static facts are of the launch with the most threads."""

    tune: dict[str, int]
    """Every declared name, with the value that the workload's variant sets, where it sets one."""
    is_default: bool
    status: Status
    why: str = ""
    """The first error, unless it passed."""
    estimated_us: float | None = None
    """docs/estimate.md: an order, not a time. None unless it compiled."""
    resolution: float | None = None
    """Relative difference up to which two of these estimates are not told apart."""
    measured_us: float | None = None
    """Median of a short session on a GPU, cold L2; None without one."""
    mostly: PartName | None = None
    """The largest part of the estimate."""
    blocks: int | None = None
    """Blocks of the grid; computed, as are all of the following."""
    threads_per_block: int | None = None
    waves: float | None = None
    """Blocks / those that the GPU holds at once."""
    registers_per_thread: int | None = None
    spill_bytes: int | None = None
    """Stored and loaded, a thread."""
    theoretical_occupancy: float | None = None
    """0 to 1."""
    instructions: int | None = None
    """SASS instructions of the code."""

    @property
    def order_us(self) -> float:
        """The time that rows are sorted by: measured, else estimated; without both the last."""
        known = (self.measured_us, self.estimated_us)
        return next((us for us in known if us is not None), float("inf"))


class ProfileChoices(Record):
    """All choices that were asked for, the fastest first."""

    schema_: Literal["kopt.profile_choices/1"] = Field(
        default="kopt.profile_choices/1", alias="schema"
    )
    status: Status
    """passed if one choice did, else that of the default or first one."""
    kernel: str
    """Kernel id."""
    candidate: str
    arch: str
    gpu: str
    """Data sheet, or device, that the estimates stand on."""
    device: str | None
    """What measured the times, e.g. cuda:0; None where nothing did."""
    set_by_variant: tuple[str, ...] = ()
    """Names that no choice changes: the variant that serves the workload sets them."""
    choices: tuple[ChoiceProfile, ...]
