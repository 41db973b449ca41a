"""What compiling a candidate told: resources, instruction mix, occupancy, diagnostics."""

from typing import Literal

from pydantic import Field

from .record import Diagnostic, Record
from .status import Status


class Toolchain(Record):
    """The compiler that made a cubin; part of the cache key."""

    compiler: Literal["nvcc", "nvrtc"]
    version: str
    """Release and build, e.g. 13.2.86."""
    path: str
    origin: Literal["setting", "pip", "cuda_home", "path"]


class KernelParameter(Record):
    """One parameter of a kernel, from the cubin's EIATTR_KPARAM_INFO."""

    ordinal: int
    offset_bytes: int
    size_bytes: int


class DependencyOrder(Record):
    """Where the global loads of a kernel stand to its wait and its trigger, by machine code order.

    What bulk copies and calls do is not told by it: such a kernel has none.
    """

    loads: int
    """Global loads in the code."""
    loads_before_wait: int | None
    """Loads before the first griddepcontrol.wait; None if it never waits."""
    loads_after_trigger: int | None
    """Loads after the first griddepcontrol.launch_dependents; None if it never triggers, so
    that the next launch starts when this one has ended."""


class KernelResources(Record):
    """Static facts of one kernel in a cubin."""

    name: str
    registers_per_thread: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_smem_bytes: int
    """Static shared memory as ptxas reports it, without the 1,024 bytes of the system."""
    constant_bytes: int
    barriers: int
    max_threads_per_block: int | None
    """From __launch_bounds__; None if the kernel has none."""
    parameters: tuple[KernelParameter, ...]
    parameter_base_bytes: int = 0
    """Where the parameters begin in their constant bank, e.g. 528 on sm_90a and 896 on sm_100a: a
    parameter is aligned there, not relative to the first one, which shows with tensor maps."""
    instructions: int | None
    """SASS instructions without trailing padding, those of called functions included; None where
    they cannot be read: nvdisasm is not installed and sass_reader.py does not know them all."""
    instruction_mix: dict[str, int] = Field(default_factory=dict[str, int])
    """Counts by class: ldg_128, ldg_64, ldg_32, ldg_16, ldg_8, stg_..., lds, sts, ldl, stl, f2fp,
    mufu, bar, shfl, mma, atom, and ld, st (generic), ldgsts, tma. Empty where `instructions` is
    None."""
    conversions: dict[str, int] = Field(default_factory=dict[str, int])
    """`f2fp` of the mix by what they make from fp32: e2m1, e4m3, e5m2, bf16, f16 ..., or from
    another format: f16_from_e4m3."""
    loads_in_flight: int | None = None
    """Global loads that a thread has under way before it waits for one; None where the scheduling
    bits of the architecture are not known."""
    dependency_order: DependencyOrder | None = None
    """Order of loads, wait and trigger; None where the instructions do not tell."""
    streaming_stores: int | None = None
    """Global stores in the code whose lines the caches give up first; None where `instructions`
    is None."""
    packed_math: float | None = None
    """Share of the floating-point sums, products, minima and maxima in the code that can make two
    values or more, 0 to 1; None where `instructions` is None."""


class Occupancy(Record):
    """Theoretical occupancy of one launch on one GPU (computed, not achieved)."""

    kernel: str
    gpu: str
    blocks_per_sm: int
    warps_per_sm: int
    theoretical_occupancy: float
    """Resident warps / warp slots of an SM, 0 to 1."""
    limiters: tuple[Literal["warps", "blocks", "registers", "shared_memory", "barriers"], ...]
    """What binds; several when they tie."""
    grid_blocks: int
    waves: float
    """Blocks of the grid / (blocks_per_sm * SMs)."""


class Build(Record):
    """One cubin: one architecture, one set of defines."""

    arch: str
    defines: dict[str, int]
    workloads: tuple[str, ...]
    """The workloads of the candidate's domain that this cubin serves."""
    cubin_sha256: str
    cubin_path: str
    """Under KOPT_HOME/cache/cubin."""
    module_global_bytes: int
    kernels: tuple[KernelResources, ...]
    toolchain: Toolchain
    compile_s: float
    """Seconds of the compiler when the cubin was made, from cache or not."""
    cached: bool


class CompileResult(Record):
    """The result of the compile stage for all architectures and builds asked for."""

    schema_: Literal["kopt.compile/1"] = Field(default="kopt.compile/1", alias="schema")
    status: Status
    """passed, plan_error, compile_error, refused or timeout."""
    kernel: str
    """Kernel id."""
    candidate: str
    chosen_tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The tune values that differ from the header's defaults."""
    builds: tuple[Build, ...] = ()
    occupancy: tuple[Occupancy, ...] = ()
    """One entry per architecture and launch of the named workload."""
    left_out: tuple[str, ...] = ()
    """Workloads of the domain for which this choice of tune values has no plan; a warning among the
    diagnostics says why. A full check refuses such a choice."""
    unserved: tuple[str, ...] = ()
    """Conditions of the variants that no workload of the domain takes: nothing of them is compiled,
    checked or measured, and an export refuses the shapes that would take them."""
    diagnostics: tuple[Diagnostic, ...] = ()
    flagged: tuple[str, ...] = ()
    """What raises scrutiny without refusing: clock reads and the like."""
    log_path: str | None = None
    """The whole compiler output."""
    sandbox: Literal["bubblewrap", "landlock", "plain"] | None = None
    """Level under which the compiler ran; None when everything came from the cache."""

    @property
    def binary_id(self) -> str:
        """Identity of the binary: equal for two candidates that compile to the same cubins."""
        return "+".join(sorted({f"{build.arch}:{build.cubin_sha256}" for build in self.builds}))
