"""The launch plan: a candidate's header resolved for one workload, one choice of tune values.

Every count is a number here: nothing of the header's expressions is left. The same plan drives
the GPU, the simulator and the exporters. `plan_resolver.py` makes it.
"""

from typing import Literal

from .problem import Problem
from .record import Diagnostic, Record

Dim3 = tuple[int, int, int]
ArgumentKind = Literal["tensor", "scratch", "tensor_map", "int32", "int64", "float32"]


class Argument(Record):
    """One kernel argument, by position."""

    kind: ArgumentKind
    name: str
    """Tensor, scratch buffer, tensor map, axis or scalar; the text of an expression else."""
    value: int | float | None = None
    """The number of a scalar argument; None for tensors, scratch and tensor maps."""
    is_axis: bool = False
    """True for an axis by name: int32 or int64, as wide as the kernel's parameter. The resolver
    puts int32 where the value fits; `plan_check.with_axis_widths` corrects it from the cubin."""


class Launch(Record):
    """One kernel launch. `grid` counts blocks, also with clusters."""

    kernel: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_smem_bytes: int = 0
    cooperative: bool = False
    pdl: bool = False
    carveout: Literal["default", "max_shared", "max_l1"] = "default"
    arguments: tuple[Argument, ...]
    line: int | None = None
    """Line of the launch in the candidate's header."""


class Scratch(Record):
    """A buffer that the launcher owns: one per buffer set, contents undefined at entry."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    init: Literal["poison", "zero"] = "poison"


class TensorMap(Record):
    """A TMA descriptor (CUtensorMap) that the launcher encodes and passes by value."""

    name: str
    tensor: str
    view: tuple[int, ...]
    """Global dimensions in elements, innermost LAST (row-major, like shapes everywhere here)."""
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: Literal["none", "32", "64", "128"] = "none"
    interleave: Literal["none", "16", "32"] = "none"
    l2: Literal["none", "64", "128", "256"] = "none"
    fill: Literal["zero", "nan"] = "zero"


class LaunchPlan(Record):
    """All that is needed to build and launch a candidate for one workload."""

    workload: str
    axes: dict[str, int]
    defines: dict[str, int]
    """What the cubin is compiled with: tune values and KOPT_<AXIS> of specialised axes."""
    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...] = ()
    tensor_maps: tuple[TensorMap, ...] = ()
    fast_math: bool = True
    max_registers: int | None = None


class PlanOutcome(Record):
    """A resolved plan, or the diagnostics that say why there is none."""

    plan: LaunchPlan | None
    diagnostics: tuple[Diagnostic, ...] = ()


def described_argument(argument: Argument, problem: Problem) -> str:
    """Return what is passed, as messages say it."""
    match argument.kind:
        case "tensor":
            tensor = problem.tensor(argument.name)
            return f"the tensor '{tensor.name}' ({tensor.role}, pointer to {tensor.dtype})"
        case "scratch":
            return f"the scratch buffer '{argument.name}' (pointer)"
        case "tensor_map":
            return f"the tensor map '{argument.name}' (CUtensorMap by value)"
        case _ if argument.is_axis:
            return f"the axis '{argument.name}' (int32 or int64)"
        case _:
            return f"'{argument.name}' ({argument.kind})"
