"""What is computed: a problem's tensors, axes, scalars and workloads, as read from problem.yaml.

Records only. `problem_loader.py` reads them, `oracle.py` runs the fp64 oracle that lies beside
problem.yaml, `roofline.py` counts bytes.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Literal

from .dtypes import dtype_size_bytes
from .layouts import padded_sf_128x4_shape
from .record import Record

Role = Literal["in", "out", "inout"]
Layout = Literal["row_major", "sf_128x4"]
Tolerance = Literal["nvfp4", "fp8", "bf16"]

TOLERANCES: dict[Tolerance, str] = {
    "nvfp4": "codes element by element given the candidate's own e4m3 scale; scale at most one "
    "step from exact; residual bit-exact",
    "fp8": "codes within one step and only near a midpoint; scales at most one step from exact",
    "bf16": "relative L2 against correct rounding, in total and per row; at most 2 ulp",
}
"""What each asks of an output, in words; docs/correctness.md says more."""


class TensorSpec(Record):
    """One tensor argument of a problem."""

    name: str
    role: Role
    dtype: str
    """torch's name; packed e2m1 is `uint8` and its shape counts bytes."""
    shape: tuple[str, ...]
    """Axis names, row-major, outermost first; () is one element."""
    static: bool = False
    """True for weights and scales that no earlier kernel writes: they may be read before a
    programmatic dependent launch waits."""
    layout: Layout = "row_major"
    """`sf_128x4`: scale factors in 128x4 tiles, padded to whole tiles (kernels/layouts.py)."""
    description: str = ""


class ScalarSpec(Record):
    """One scalar argument of a problem."""

    name: str
    dtype: Literal["float32", "int32", "int64"]
    value: float | int


class Workload(Record):
    """Concrete values for every axis of a problem; the kernel id is `<problem>_<workload>`."""

    name: str
    axes: dict[str, int]
    """Variable and computed axes alike."""


class Baseline(Record):
    """A production implementation that speed is compared with."""

    name: str
    entry: str
    """Function in baseline.py (kernels/baseline_loader.py)."""
    layout: str
    """The scale-factor layout it produces: like for like only if it is the problem's."""
    pdl: tuple[bool, ...] = (False,)
    """With and without programmatic dependent launch: the ways that are tried."""
    devices: tuple[str, ...] = ()
    """Compute capabilities on which it is meant to work: ("9.0", "10.0"). For lists only: whether
    it works on a device is found out by checking its outputs there."""


class Problem(Record):
    """A folder under kernels/problems/, or a user's own folder of the same format."""

    name: str
    op_type: str
    description: str
    axes: dict[str, str | None]
    """Axis name to its expression; None for a variable axis."""
    tensors: tuple[TensorSpec, ...]
    """In call order."""
    scalars: tuple[ScalarSpec, ...] = ()
    row_axis: str
    """Rows along this axis are computed independently of one another."""
    workloads: tuple[Workload, ...]
    tolerance: Tolerance
    baselines: tuple[Baseline, ...] = ()
    flops: str = "0"
    """Expression over the axes: floating-point operations of one call (kernels/roofline.py)."""
    folder: Path

    def __hash__(self) -> int:
        """Return a hash that equal problems share, so that work on one is done once."""
        return hash((self.name, self.folder))

    @property
    def kernel_ids(self) -> tuple[str, ...]:
        """The kernel ids `<problem>_<workload>`, in file order."""
        return tuple(self.kernel_id(workload) for workload in self.workloads)

    def kernel_id(self, workload: Workload) -> str:
        """Return `<problem>_<workload>`."""
        return f"{self.name}_{workload.name}"

    def tensor(self, name: str) -> TensorSpec:
        """Return the tensor called `name`; KeyError if there is none."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    def workload(self, name: str) -> Workload:
        """Return the workload called `name`; KeyError if there is none."""
        for workload in self.workloads:
            if workload.name == name:
                return workload
        raise KeyError(name)


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
