"""What every form of an export calls: tensors, axes and scalars, and what must hold of them.

The C++ interface, the bindings and the tests are all written from this.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.expressions import expression_names
from kopt.kernels.problem import ScalarSpec, TensorSpec

from .exported_kernel import ExportedKernel
from .expression_code import cpp_expression, divisibility, python_expression
from .type_names import SCALAR_TYPES

SCRATCH_ALIGNMENT_BYTES = 256
_ROLES = {"in": "read", "out": "written", "inout": "read and written"}


@dataclass(frozen=True)
class AxisSource:
    """Where a variable axis is read from."""

    tensor: TensorSpec
    dimension: int


@dataclass(frozen=True)
class Signature:
    """How the operator of `exported` is called."""

    exported: ExportedKernel
    vector_bytes: int
    """The widest access of a thread."""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Variable axes: parameters of the C++ interface, read from shapes elsewhere."""
        return tuple(name for name, text in self.exported.problem.axes.items() if text is None)

    @cached_property
    def computed(self) -> dict[str, str]:
        """Computed axes with their expressions, in the order in which they can be computed."""
        return {name: text for name, text in self.exported.problem.axes.items() if text is not None}

    @cached_property
    def scalars(self) -> tuple[ScalarSpec, ...]:
        """Scalars that every launch list hands to a kernel; the others are fixed in the code."""
        passed = [
            {entry.name for launch in variant.launch for entry in launch.args}
            for variant in self.exported.header.variants
        ]
        return tuple(
            scalar
            for scalar in self.exported.problem.scalars
            if all(scalar.name in names for names in passed)
        )

    @cached_property
    def fixed_scalars(self) -> tuple[ScalarSpec, ...]:
        """Scalars that the interface does not take."""
        return tuple(s for s in self.exported.problem.scalars if s not in self.scalars)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Tensors that hold something before the call, in call order."""
        return tuple(t for t in self.exported.problem.tensors if t.role != "out")

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Tensors that are written and not read, in call order."""
        return tuple(t for t in self.exported.problem.tensors if t.role == "out")

    @property
    def has_scratch(self) -> bool:
        """Whether the caller provides a buffer for intermediate results."""
        return bool(self.exported.header.scratch)

    @property
    def is_dependent(self) -> bool:
        """Whether a launch may begin before the kernel before it in the stream has ended."""
        variants = self.exported.header.variants
        return any(launch.pdl for variant in variants for launch in variant.launch)

    def source_of(self, axis: str) -> AxisSource:
        """Return the first dimension that a variable axis can be read from.

        Raises:
            ToolError: No tensor has it, so that no binding could know it.
        """
        for tensor in (*self.inputs, *self.outputs):
            if tensor.layout == "row_major" and axis in tensor.shape:
                return AxisSource(tensor, tensor.shape.index(axis))
        raise ToolError(
            f"axis {axis} of {self.exported.name} is no dimension of a tensor, so it cannot be read"
            " from shapes: export --as cuda, where the caller passes it"
        )

    def alignment_bytes(self, tensor: TensorSpec) -> int:
        """Return what the address of `tensor` must be a multiple of."""
        return self.vector_bytes if tensor.shape else dtype_size_bytes(tensor.dtype)

    def may_be_longer(self, tensor: TensorSpec) -> bool:
        """Whether more rows than the first axis says do no harm: a table that others look up."""
        if tensor.role != "in" or not tensor.shape or tensor.shape[0] not in self.computed:
            return False
        users = [t for t in self.exported.problem.tensors if tensor.shape[0] in t.shape]
        return users == [tensor] and tensor.layout == "row_major"

    def exact_multiples(self) -> tuple[tuple[str, int], ...]:
        """Return `("K", 16)` for every axis `K // 16` of a tensor, the largest number of each."""
        found: dict[str, int] = {}
        used = {name for tensor in self.exported.problem.tensors for name in tensor.shape}
        for name, text in self.computed.items():
            pair = divisibility(text) if name in used else None
            if pair is not None:
                found[pair[0]] = max(found.get(pair[0], 1), pair[1])
        return tuple(found.items())

    def axes_for(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return every axis that `texts` need, those of computed axes too, in file order."""
        needed: set[str] = set()
        pending = [name for text in texts for name in expression_names(text)]
        while pending:
            name = pending.pop()
            if name in self.exported.problem.axes and name not in needed:
                needed.add(name)
                pending.extend(expression_names(self.computed.get(name, "0")))
        return tuple(name for name in self.exported.problem.axes if name in needed)

    @property
    def words(self) -> dict[str, object]:
        """What every template may say."""
        problem = self.exported.problem
        return {
            "name": self.exported.name,
            "exported": self.exported,
            "signature": self,
            "tensors": problem.tensors,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "scalars": self.scalars,
            "scalar_types": SCALAR_TYPES,
            "first": self.inputs[0].name,
            "rows": problem.row_axis if problem.row_axis in self.axes else "",
        }

    def locals(self, texts: Iterable[str]) -> list[str]:
        """Return C++ declarations of the axes that `texts` need, from those of `params`."""
        return [
            f"  const std::int64_t {axis} = "
            + (cpp_expression(self.computed[axis]) if axis in self.computed else f"params.{axis}")
            + ";"
            for axis in self.axes_for(texts)
        ]

    def cpp_parameters(self, tensor_type: str, tensors: Iterable[TensorSpec]) -> list[str]:
        """Return the parameters of a binding's function, with their types."""
        own = [f"{tensor_type} {tensor.name}" for tensor in tensors]
        return own + [f"{SCALAR_TYPES[one.dtype].parameter} {one.name}" for one in self.scalars]

    def cpp_shape(self, tensor: TensorSpec) -> str:
        """Return the stored extents as C++, comma-separated."""
        return ", ".join(map(cpp_expression, storage_texts(tensor)))

    @property
    def axis_tensors(self) -> tuple[str, ...]:
        """Names of the tensors that variable axes are read from."""
        return tuple(dict.fromkeys(self.source_of(axis).tensor.name for axis in self.axes))

    @property
    def stored(self) -> list[str]:
        """Every extent of a stored tensor."""
        tensors = self.exported.problem.tensors
        return sorted({text for tensor in tensors for text in storage_texts(tensor)})

    def describe(self, tensor: TensorSpec) -> str:
        """Return what a caller must know of `tensor`."""
        shape = ", ".join(storage_texts(tensor))
        words = f"{tensor.dtype} [{shape}], {_ROLES[tensor.role]}"
        words += f", aligned to {self.alignment_bytes(tensor)} bytes."
        if tensor.static and self.is_dependent:
            words += (
                " Read before an earlier kernel of the stream may have ended: let none write it."
            )
        return f"{words} {tensor.description.strip()}" if tensor.description else words

    def has_padding(self, tensor: TensorSpec) -> bool:
        """Whether the buffer may have elements that no call writes."""
        axes = self.exported.problem.axes
        texts = [axes.get(name) or "" for name in tensor.shape]
        return tensor.layout != "row_major" or any("align_up" in text for text in texts)

    def python_axes(self) -> Iterator[str]:
        """Give Python lines that read the axes which the shapes of pure outputs need."""
        texts = [text for tensor in self.outputs for text in storage_texts(tensor)]
        for axis in self.axes_for(texts):
            if axis in self.computed:
                yield f"{axis} = {python_expression(self.computed[axis])}"
            else:
                source = self.source_of(axis)
                yield f"{axis} = {source.tensor.name}.shape[{source.dimension}]"

    def python_shape(self, tensor: TensorSpec) -> str:
        """Return the stored shape as a Python tuple."""
        parts = [python_expression(text) for text in storage_texts(tensor)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def check_of(self, tensor: TensorSpec) -> str:
        """Return the function of a binding that refuses what `tensor` may not be."""
        if self.may_be_longer(tensor):
            return "require_table"
        return "require_elements" if tensor.layout != "row_major" or not tensor.shape else "require"


def storage_texts(tensor: TensorSpec) -> tuple[str, ...]:
    """Return the stored shape as expressions over axes; 128x4 tiles are one flat padded axis."""
    if tensor.layout == "row_major":
        return tensor.shape
    *batch, rows, columns = tensor.shape
    return (*batch, f"ceil_div({rows}, 128) * ceil_div({columns}, 4) * 512")
