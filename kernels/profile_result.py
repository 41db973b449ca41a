"""What is known of one candidate without timing it: facts, counts, floors, estimate, suspects."""

from typing import Literal

from pydantic import Field

from .byte_model import ByteModel, Roofline
from .compile_result import KernelResources, Occupancy
from .counters import ExecutionCounters
from .plan import Dim3
from .record import Diagnostic, Record
from .status import Provenance, Status
from .time_estimate import TimeEstimate

SuspectName = Literal[
    "memory_bandwidth",
    "launch_latency",
    "memory_latency",
    "instruction_issue",
    "several_launches",
    "uncoalesced_access",
    "repeated_reads",
    "narrow_access",
    "spills",
    "low_occupancy",
    "few_blocks",
    "barriers",
]


BufferRole = Literal["in", "out", "inout", "scratch"]


class TensorTraffic(Record):
    """The bytes of one buffer: what the definition needs against what the candidate asked for."""

    name: str
    role: BufferRole
    needed_read_bytes: int
    needed_written_bytes: int
    load_bytes: int | None
    """None if nothing was counted; so are the following."""
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
    """By how much the estimate falls when only this is taken away; 0 for what cannot be."""
    families: tuple[str, ...] = ()
    """Strategy families that address it."""
    provenance: Literal[Provenance.ESTIMATED] = Provenance.ESTIMATED


class ProfileResult(Record):
    """The profile of one candidate for one workload on one architecture."""

    schema_: Literal["kopt.profile/1"] = Field(default="kopt.profile/1", alias="schema")
    status: Status
    """passed; that of the compile stage; or that of the execution that should have counted."""
    kernel: str
    """Kernel id."""
    candidate: str
    arch: str
    gpu: str
    """Data sheet that the floors and the estimate stand on."""
    byte_model: ByteModel
    roofline: Roofline
    launches: tuple[LaunchProfile, ...] = ()
    device: str | None = None
    """What counted the accesses; None if nothing did."""
    sandbox: str | None = None
    """Level under which it did."""
    counters: ExecutionCounters | None = None
    """None if unavailable: no device was given, or the candidate does not run on it."""
    traffic: tuple[TensorTraffic, ...] = ()
    """Every tensor in call order, then scratch."""
    estimate: TimeEstimate | None = None
    """None unless the candidate compiled."""
    floor_fraction: float | None = None
    """Roofline floor / estimated time, 0 to 1: estimated as well."""
    suspects: tuple[Suspect, ...] = ()
    """The main one first."""
    diagnostics: tuple[Diagnostic, ...] = ()
