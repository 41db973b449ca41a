"""Shapes in generated bindings: axes read from tensors, and what every tensor must look like."""

from collections.abc import Iterator

from kopt.kernels.problem import TensorSpec

from .expression_code import cpp_expression, python_expression
from .signature import Signature, storage_texts


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
