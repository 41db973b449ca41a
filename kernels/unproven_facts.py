"""What is known of a shipped kernel that never ran on the GPU that it was written for.

The facts lie at `<problem>/unproven/<workload>.<arch>.facts.json`, the source beside them. They are
no receipt: nothing here says that the kernel is fast, or correct, on that GPU. `benchmarks/
unproven_facts.py` makes them; `shipped_kernels.py` finds the files.
"""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from kopt.config.errors import ToolError

from .check_result import CheckLevel
from .compile_result import Occupancy
from .plan import Dim3
from .record import Record
from .status import Provenance, Status, Verdict

SM_100_BODIES = (
    "add2",
    "float2_to_e2m1x2",
    "floats_to_e2m1x8",
    "fma2",
    "load_32",
    "mul2",
    "store_32",
)
"""Functions of kernels/common with one body from sm_100 on and another one before."""


class StaticFacts(Record):
    """One launch of one kernel: from its cubin, its plan and the accesses that sim counted."""

    candidate: str
    arch: str
    grid: Dim3
    block: Dim3
    registers_per_thread: int
    spill_bytes: int
    """Stored and loaded."""
    static_smem_bytes: int
    occupancy: Occupancy
    """Theoretical, on the GPU of the data sheet for `arch`."""
    instructions: int | None
    """Instructions in the code, not in a run."""
    instruction_mix: dict[str, int]
    """Counts by class: ldg_256 are 32-byte loads, f2fp conversions, bar barriers."""
    conversions: dict[str, int]
    """Numbers of `f2fp` by what they make: e2m1, e4m3, bf16, f16_from_e4m3."""
    loads_in_flight: int | None
    loaded_bytes: int | None
    """Asked for by all threads, counted on sim; each global load of each thread counts."""
    stored_bytes: int | None
    estimated_us: float
    """docs/estimate.md: an order, not a time."""


class SimCheck(Record):
    """The full check on the simulator."""

    status: Status
    level: CheckLevel
    workloads: tuple[str, ...]
    executions: int
    cpu_bodies: tuple[str, ...]
    """kopt wrappers whose CPU body stood in for device instructions."""


class OtherGpuRun(Record):
    """What a GPU of another architecture said: another binary, with other bodies of wrappers.

    Its times compare this kernel with the problem's reference kernel on that GPU, and are no
    statement about the architecture that the kernel was written for.
    """

    kernel: str
    candidate: str
    gpu: str
    arch: str
    driver_version: str
    measured_at: str
    """UTC, ISO 8601."""
    status: Status
    """Status of the full check on that GPU."""
    executions: int
    other_bodies: tuple[str, ...]
    """kopt wrappers in the source that have a body of their own from sm_100 on."""
    candidate_us: float | None = None
    """Median of a call, L2 cold; None where nothing was timed."""
    reference_us: float | None = None
    null_kernel_us: float | None = None
    """Empty kernels in the launch shape."""
    ratio: float | None = None
    """Time of the reference kernel / time of this one."""
    interval: tuple[float, float] | None = None
    """95 % of `ratio`."""
    verdict: Verdict | None = None
    provenance: Literal[Provenance.MEASURED] = Provenance.MEASURED


class UnprovenFacts(Record):
    """All that is known of one unproven kernel at one workload."""

    schema_: Literal["kopt.unproven/2"] = Field(default="kopt.unproven/2", alias="schema")
    kernel: str
    candidate: str
    """SHA-256 of the source."""
    source_file: str
    """Its name beside the facts."""
    arch: str
    gpu: str
    """Whose data sheet the occupancies, floors and estimates are of."""
    tune: dict[str, int]
    """The default values, which all of this is about."""
    compiler: str
    """e.g. nvcc 13.2.86."""
    needed_bytes: int
    """Every input once and every output once."""
    memory_floor_us: float
    own: StaticFacts
    reference: StaticFacts
    """The problem's reference kernel, the same way."""
    elsewhere: StaticFacts
    """Facts of this source for sm_90a, where the wrappers have other bodies."""
    sim: SimCheck
    other_gpu: OtherGpuRun | None = None
    """A run on another GPU; None until there is one."""


def sm_100_bodies(source: str) -> tuple[str, ...]:
    """Return the kopt wrappers in `source` that run another body on sm_100 than before it."""
    return tuple(name for name in SM_100_BODIES if f"kopt::{name}(" in source)


def facts_text(facts: UnprovenFacts) -> str:
    """Return the file of `facts`."""
    document = facts.model_dump(mode="json", by_alias=True)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_facts(path: Path) -> UnprovenFacts:
    """Return the facts in `path`.

    Raises:
        ToolError: It cannot be read or is of another schema.
    """
    try:
        return UnprovenFacts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        raise ToolError(f"{path} is no kopt.unproven/2: {error.errors()[0]['msg']}") from error
