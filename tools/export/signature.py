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

from .expression_code import cpp_expression, divisibility, python_expression
from .subject import ExportSubject

SCRATCH_ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class AxisSource:
    """Where a variable axis is read from."""

    tensor: TensorSpec
    dimension: int


@dataclass(frozen=True)
class Signature:
    """How the operator of `subject` is called."""

    subject: ExportSubject
    vector_bytes: int
    """The widest access of a thread."""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Variable axes: parameters of the C++ interface, read from shapes elsewhere."""
        return tuple(name for name, text in self.subject.problem.axes.items() if text is None)

    @cached_property
    def computed(self) -> dict[str, str]:
        """Computed axes with their expressions, in the order in which they can be computed."""
        return {name: text for name, text in self.subject.problem.axes.items() if text is not None}

    @cached_property
    def scalars(self) -> tuple[ScalarSpec, ...]:
        """Scalars that every launch list hands to a kernel; the others are fixed in the code."""
        passed = [
            {entry.name for launch in variant.launch for entry in launch.args}
            for variant in self.subject.header.variants
        ]
        return tuple(
            scalar
            for scalar in self.subject.problem.scalars
            if all(scalar.name in names for names in passed)
        )

    @cached_property
    def fixed_scalars(self) -> tuple[ScalarSpec, ...]:
        """Scalars that the interface does not take."""
        return tuple(s for s in self.subject.problem.scalars if s not in self.scalars)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Tensors that hold something before the call, in call order."""
        return tuple(t for t in self.subject.problem.tensors if t.role != "out")

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Tensors that are written and not read, in call order."""
        return tuple(t for t in self.subject.problem.tensors if t.role == "out")

    @property
    def has_scratch(self) -> bool:
        """Whether the caller provides a buffer for intermediate results."""
        return bool(self.subject.header.scratch)

    @property
    def is_dependent(self) -> bool:
        """Whether a launch may begin before the kernel before it in the stream has ended."""
        variants = self.subject.header.variants
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
            f"axis {axis} of {self.subject.name} is no dimension of a tensor, so it cannot be read"
            " from shapes: export --as cuda, where the caller passes it"
        )

    def alignment_bytes(self, tensor: TensorSpec) -> int:
        """Return what the address of `tensor` must be a multiple of."""
        return self.vector_bytes if tensor.shape else dtype_size_bytes(tensor.dtype)

    def may_be_longer(self, tensor: TensorSpec) -> bool:
        """Whether more rows than the first axis says do no harm: a table that others look up."""
        if tensor.role != "in" or not tensor.shape or tensor.shape[0] not in self.computed:
            return False
        users = [t for t in self.subject.problem.tensors if tensor.shape[0] in t.shape]
        return users == [tensor] and tensor.layout == "row_major"

    def exact_multiples(self) -> tuple[tuple[str, int], ...]:
        """Return `("K", 16)` for every axis `K // 16` of a tensor, the largest number of each."""
        found: dict[str, int] = {}
        used = {name for tensor in self.subject.problem.tensors for name in tensor.shape}
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
            if name in self.subject.problem.axes and name not in needed:
                needed.add(name)
                pending.extend(expression_names(self.computed.get(name, "0")))
        return tuple(name for name in self.subject.problem.axes if name in needed)


def storage_texts(tensor: TensorSpec) -> tuple[str, ...]:
    """Return the stored shape as expressions over axes; 128x4 tiles are one flat padded axis."""
    if tensor.layout == "row_major":
        return tensor.shape
    *batch, rows, columns = tensor.shape
    return (*batch, f"ceil_div({rows}, 128) * ceil_div({columns}, 4) * 512")


def has_padding(tensor: TensorSpec, axes: dict[str, str | None]) -> bool:
    """Whether the buffer may have elements that no call writes."""
    texts = [axes.get(name) or "" for name in tensor.shape]
    return tensor.layout != "row_major" or any("align_up" in text for text in texts)


def read_axes(signature: Signature) -> str:
    """Return the C++ lines that set the axes of `params` from shapes; ranks are checked first."""
    sources = {axis: signature.source_of(axis) for axis in signature.axes}
    ranks = dict.fromkeys(source.tensor.name for source in sources.values())
    lines = [
        f'  require_rank({name}, "{name}", {len(signature.subject.problem.tensor(name).shape)});\n'
        for name in ranks
    ]
    lines += [
        f"  params.{axis} = {source.tensor.name}.size({source.dimension});\n"
        for axis, source in sources.items()
    ]
    used = {text for tensor in signature.subject.problem.tensors for text in storage_texts(tensor)}
    lines += [
        f"  const std::int64_t {axis} = "
        + (
            cpp_expression(signature.computed[axis])
            if axis in signature.computed
            else f"params.{axis}"
        )
        + ";\n"
        for axis in signature.axes_for(sorted(used))
    ]
    return "".join(lines)


def checked_tensors(signature: Signature, dtypes: dict[str, str]) -> str:
    """Return the C++ lines that refuse tensors of another dtype, shape, layout or device.

    Args:
        signature: Of the operator.
        dtypes: The binding's C++ name of each dtype.
    """
    first = signature.inputs[0].name
    lines: list[str] = []
    for tensor in signature.subject.problem.tensors:
        name = tensor.name
        shape = ", ".join(cpp_expression(text) for text in storage_texts(tensor))
        function = _check_of(signature, tensor)
        lines.append(
            f'  {function}({name}, "{name}", {dtypes[tensor.dtype]}, {{{shape}}}, {first});\n'
            f"  params.{name} = {name}.data_ptr();\n"
        )
    return "".join(lines)


def _check_of(signature: Signature, tensor: TensorSpec) -> str:
    if signature.may_be_longer(tensor):
        return "require_table"
    return "require_elements" if tensor.layout != "row_major" or not tensor.shape else "require"


def python_axes(signature: Signature) -> Iterator[str]:
    """Give Python lines that read the axes which the shapes of pure outputs need."""
    texts = [text for tensor in signature.outputs for text in storage_texts(tensor)]
    for axis in signature.axes_for(texts):
        if axis in signature.computed:
            yield f"{axis} = {python_expression(signature.computed[axis])}"
        else:
            source = signature.source_of(axis)
            yield f"{axis} = {source.tensor.name}.shape[{source.dimension}]"


def python_shape(tensor: TensorSpec) -> str:
    """Return the stored shape as a Python tuple."""
    parts = [python_expression(text) for text in storage_texts(tensor)]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


_CPP_TYPES = {"float32": "double", "int32": "std::int64_t", "int64": "std::int64_t"}
"""C++ types of a binding's scalar parameters."""
_CASTS = {"float32": "float", "int32": "std::int32_t", "int64": "std::int64_t"}


def scalar_parameters(signature: Signature) -> list[str]:
    """Return the scalar parameters of a binding's function, with their types."""
    return [f"{_CPP_TYPES[scalar.dtype]} {scalar.name}" for scalar in signature.scalars]


def scalar_casts(signature: Signature) -> str:
    """Return the statements that fill the scalars of Params from a binding's parameters."""
    return "".join(
        f"  params.{one.name} = static_cast<{_CASTS[one.dtype]}>({one.name});\n"
        for one in signature.scalars
    )
