"""What is computed: a problem's tensors, axes, scalars and workloads, as read from problem.yaml.

The records' fields are the grammar of problem.yaml. `problem_loader.py` reads it, `oracle.py` runs
the fp64 oracle that lies beside it, `roofline.py` counts bytes.
"""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .dtypes import DTYPE_SIZE_BYTES, dtype_size_bytes
from .layouts import padded_sf_128x4_shape
from .precision import Precision
from .problem_scope import (
    all_axes,
    argument_name,
    axes_name,
    axis_name,
    axis_value,
    refuse_other_axes,
    scalar_value,
    workload_axes,
    workload_name,
    workload_scalars,
)
from .record import Record, SparseRecord
from .yaml_types import NAMED, Flag, Mistake, Text, expression, form, known

Role = Literal["in", "out", "inout"]
Layout = Literal["row_major", "sf_128x4"]
Tolerance = Literal["nvfp4", "fp8", "bf16", "fp16", "fp32", "fp64", "exact"]
Use = Literal["check", "time", "both"]

MAX_RANK = 5

_OF_HALVES = (
    "relative L2 against correct rounding, in total and per row; at most 2 ulp. Where the oracle"
    " says that results are rounded once: the rounding of a value that fp32 sums may have"
)
TOLERANCES: dict[Tolerance, str] = {
    "nvfp4": "codes element by element given the candidate's own e4m3 scale; scale at most one "
    "step from exact; residual bit-exact",
    "fp8": "codes within one step and only near a midpoint; scales at most one step from exact",
    "bf16": _OF_HALVES,
    "fp16": _OF_HALVES,
    "fp32": "relative error at most 2^-16",
    "fp64": "relative error at most 2^-40",
    "exact": "equal: integers, and sums that every order of operations gives alike",
}
"""What each asks of an output, in words; docs/correctness.md says more."""

USES: dict[Use, str] = {
    "check": "every check runs it; it is timed only where it is named",
    "time": "a GPU checks and times it; the simulator never runs it",
    "both": "every check runs it, and it is timed",
}

_USUAL: tuple[tuple[str, Tolerance], ...] = (
    ("float8_e4m3fn", "fp8"),
    ("float8_e5m2", "fp8"),
    ("bfloat16", "bf16"),
    ("float16", "fp16"),
    ("float32", "fp32"),
    ("float64", "fp64"),
)
"""By the dtype of an output, the coarsest first."""

Axis = Annotated[str, known("axes", "axis")]
ArgumentName = Annotated[str, form(r"[a-z][a-z0-9_]{0,63}"), AfterValidator(argument_name)]


class TensorSpec(Record):
    """One tensor argument of a problem."""

    name: ArgumentName
    role: Role
    dtype: Annotated[str, known(DTYPE_SIZE_BYTES, "dtype")]
    """torch's name; packed e2m1 is `uint8` and its shape counts bytes."""
    shape: Annotated[tuple[Axis, ...], Field(max_length=MAX_RANK)]
    """Axis names, row-major, outermost first; () is one element."""
    static: Flag = False
    """True for weights and scales that no earlier kernel writes: they may be read before a
    programmatic dependent launch waits."""
    layout: Layout = "row_major"
    """`sf_128x4`: scale factors in 128x4 tiles, padded to whole tiles (kernels/layouts.py)."""
    description: Text = ""

    @field_validator("layout")
    @classmethod
    def _of_scales(cls, layout: Layout, info: ValidationInfo) -> Layout:
        shape, dtype = info.data.get("shape", ()), info.data.get("dtype", "uint8")
        if layout == "sf_128x4" and (len(shape) < 2 or DTYPE_SIZE_BYTES[dtype] != 1):
            raise Mistake("sf_128x4 is for scales of one byte with at least 2 axes")
        return layout


class ScalarSpec(Record):
    """One scalar argument of a problem."""

    name: ArgumentName
    dtype: Literal["float32", "int32", "int64"]
    value: Annotated[float | int, BeforeValidator(scalar_value)]


class Workload(SparseRecord):
    """Concrete values for every axis of a problem; the kernel id is `<problem>_<workload>`."""

    left_out: ClassVar[dict[str, object]] = {"use": "both", "scalars": {}}
    name: Annotated[str, AfterValidator(workload_name)]
    axes: Annotated[dict[str, int], BeforeValidator(workload_axes)]
    """Variable and computed axes alike."""
    use: Use = "both"
    """Where it is run (`USES`)."""
    scalars: Annotated[dict[str, float | int], BeforeValidator(workload_scalars)] = Field(
        default_factory=dict[str, float | int]
    )
    """Scalars with another value than the problem's."""

    @model_validator(mode="after")
    def _says_its_own_axes(self, info: ValidationInfo) -> Self:
        if info.context is not None and info.context.is_whole:
            refuse_other_axes(self.name, info.context, self.axes)
        return self


class Baseline(Record):
    """A production implementation that speed is compared with."""

    name: Text
    entry: Annotated[Text, form(r"[A-Za-z_][A-Za-z0-9_]{0,79}")]
    """Function in baseline.py (kernels/baseline_loader.py)."""
    layout: Text
    """The scale-factor layout it produces: like for like only if it is the problem's."""
    pdl: tuple[Flag, ...] = (False,)
    """With and without programmatic dependent launch: the ways that are tried."""
    devices: tuple[str, ...] = ()
    """Compute capabilities on which it is meant to work: ("9.0", "10.0"). For lists only: whether
    it works on a device is found out by checking its outputs there."""


def usual_tolerance(tensors: Sequence[TensorSpec]) -> Tolerance:
    """Return what the outputs' dtypes ask for; the coarsest of them gives its name to all."""
    outputs = {tensor.dtype for tensor in tensors if tensor.role != "in"}
    if {"uint8", "float8_e4m3fn"} <= outputs:  # packed e2m1 codes and their scales
        return "nvfp4"
    for dtype, tolerance in _USUAL:
        if dtype in outputs:
            return tolerance
    return "exact"


class Problem(SparseRecord):
    """A folder under kernels/problems/, or a user's own folder of the same format."""

    left_out: ClassVar[dict[str, object]] = {"precision": "ieee"}
    name: Annotated[Text, form(r"[a-z][a-z0-9_]{0,79}")]
    op_type: Text
    description: Text
    axes: dict[
        Annotated[str, AfterValidator(axis_name)],
        Annotated[str | None, BeforeValidator(axis_value)],
    ]
    """Axis name to its expression; None for a variable axis."""
    tensors: Annotated[tuple[TensorSpec, ...], NAMED]
    """In call order."""
    scalars: Annotated[tuple[ScalarSpec, ...], NAMED] = ()
    row_axis: Axis | None = None
    """Rows along this axis are computed independently of one another; None where an output depends
    on all of the inputs."""
    workloads: Annotated[tuple[Workload, ...], NAMED, Field(min_length=1)]
    tolerance: Tolerance = Field(
        default_factory=lambda data: usual_tolerance(data.get("tensors", ()))
    )
    """What is asked of the outputs: by their dtypes, unless `exact` asks for every bit."""
    precision: Precision = "ieee"
    """What float32 products of the problem's libraries may do (`PRECISIONS`)."""
    baselines: tuple[Baseline, ...] = ()
    flops: Annotated[str, expression("axes")] = "0"
    """Expression over the axes: floating-point operations of one call that tensor cores cannot do
    (kernels/roofline.py)."""
    matrix_flops: Annotated[str, expression("axes")] = "0"
    """Expression over the axes: those of products of matrices, two for each product of numbers."""
    folder: Path

    @field_validator("tensors")
    @classmethod
    def _computes_something(
        cls, tensors: tuple[TensorSpec, ...], info: ValidationInfo
    ) -> tuple[TensorSpec, ...]:
        if info.context is not None and all(tensor.role == "in" for tensor in tensors):
            raise Mistake("none has the role out or inout: nothing would be computed")
        return tensors

    @field_validator("tolerance")
    @classmethod
    def _fits_its_outputs(cls, tolerance: Tolerance, info: ValidationInfo) -> Tolerance:
        tensors: tuple[TensorSpec, ...] = info.data.get("tensors", ())
        allowed = {"exact", usual_tolerance(tensors)}
        if any(tensor.role != "in" and tensor.dtype == "uint8" for tensor in tensors):
            allowed.add("nvfp4")
        if info.context is not None and tensors and tolerance not in allowed:
            usual = usual_tolerance(tensors)
            raise Mistake(
                f"its outputs are judged by {usual}, as their dtypes ask; leave the key out, or"
                " write exact where every order of operations gives the same bits"
            )
        return tolerance

    def __hash__(self) -> int:
        """Return a hash that equal problems share, so that work on one is done once.

        With the workloads, in which the problems of shapes that are drawn for a check differ.
        """
        return hash((self.name, self.folder, tuple(one.name for one in self.workloads)))

    @property
    def kernel_ids(self) -> tuple[str, ...]:
        """The kernel ids `<problem>_<workload>`, in file order."""
        return tuple(self.kernel_id(workload) for workload in self.workloads)

    @property
    def variable_axes(self) -> tuple[str, ...]:
        """The axes that a workload gives values to, in file order."""
        return tuple(axis for axis, expression in self.axes.items() if expression is None)

    def kernel_id(self, workload: Workload) -> str:
        """Return `<problem>_<workload>`."""
        return f"{self.name}_{workload.name}"

    def tensor(self, name: str) -> TensorSpec:
        """Return the tensor called `name`; KeyError if there is none."""
        return {tensor.name: tensor for tensor in self.tensors}[name]

    def scalars_at(self, workload: Workload) -> tuple[ScalarSpec, ...]:
        """Return the scalars with the values that they have at `workload`."""
        own = workload.scalars
        return tuple(
            scalar.model_copy(update={"value": own[scalar.name]}) if scalar.name in own else scalar
            for scalar in self.scalars
        )

    def scalar_values(self, workload: Workload) -> dict[str, float | int]:
        """Return the values of the scalars at `workload`, by name."""
        return {scalar.name: scalar.value for scalar in self.scalars_at(workload)}

    def workload(self, name: str) -> Workload:
        """Return the workload called `name`; KeyError if there is none."""
        return {workload.name: workload for workload in self.workloads}[name]


def make_workload(
    problem: Problem, given: Mapping[str, int], scalars: Mapping[str, float | int] | None = None
) -> Workload:
    """Return the workload of these values of the variable axes, whether it is a named one or not.

    Raises:
        Mistake: A computed axis has no value there.
    """
    name = axes_name(problem.variable_axes, given)
    return Workload(name=name, axes=all_axes(problem.axes, given), scalars=dict(scalars or {}))


def tensor_shape(tensor: TensorSpec, axes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the logical shape in elements, before any padding of the layout."""
    return tuple(axes[name] for name in tensor.shape)


def storage_shape(tensor: TensorSpec, axes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of the buffer in elements; `sf_128x4` scales become one flat padded axis.

    Leading axes of a `sf_128x4` tensor are batches, each padded on its own: (8, 256, 448) becomes
    (8, padded) with padded = ceil(256 / 128) * ceil(448 / 4) * 512.
    """
    shape = tensor_shape(tensor, axes)
    if tensor.layout == "row_major":
        return shape
    *batch, rows, columns = shape
    return (*batch, padded_sf_128x4_shape(rows, columns))


def tensor_size_bytes(tensor: TensorSpec, axes: Mapping[str, int]) -> int:
    """Return the bytes of the buffer, padding of the layout included."""
    return prod(storage_shape(tensor, axes)) * dtype_size_bytes(tensor.dtype)
