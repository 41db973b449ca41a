"""`--as torch`: a Python package that builds the sources and registers one operator."""

from .file_text import filled
from .routes import Route
from .signature import (
    Signature,
    checked_tensors,
    has_padding,
    python_axes,
    python_shape,
    read_axes,
    scalar_casts,
    scalar_parameters,
)
from .subject import flags_without_standard, gencode

_TORCH_TYPES = {
    "bool": "kBool",
    "uint8": "kByte",
    "int8": "kChar",
    "float8_e4m3fn": "kFloat8_e4m3fn",
    "float8_e5m2": "kFloat8_e5m2",
    "float16": "kHalf",
    "bfloat16": "kBFloat16",
    "int16": "kShort",
    "float32": "kFloat",
    "int32": "kInt",
    "uint32": "kUInt32",
    "int64": "kLong",
    "float64": "kDouble",
}
_DTYPES = {dtype: f"at::{name}" for dtype, name in _TORCH_TYPES.items()}
_SCHEMA_TYPES = {"float32": "float", "int32": "int", "int64": "int"}
_SCHEMA_WIDTH = 90


def torch_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of this form beside the sources and the test."""
    subject, name = signature.subject, signature.subject.name
    flags = (*flags_without_standard(subject), gencode(subject))
    words = {
        "NAME": name,
        "SOURCES": "".join(f'    "{name}_{route.tag}.cu",\n' for route in routes),
        "FLAGS": "".join(f'    "{flag}",\n' for flag in flags),
        **_binding_words(signature),
        **_python_words(signature),
    }
    return {
        f"{name}/__init__.py": filled("torch_init.py", words),
        f"{name}/csrc/torch_binding.cpp": filled("torch_binding.cpp", words),
        "test/call.py": filled("call_torch.py", words),
        "test/test_operator.py": filled("test_operator.py", words),
    }


def _binding_words(signature: Signature) -> dict[str, str]:
    tensors, scalars = signature.subject.problem.tensors, signature.scalars
    marks = {"in": "", "out": "({}!)", "inout": "({}!)"}
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    schema = [
        f"Tensor{marks[t.role].format(next(letters)) if t.role != 'in' else ''} {t.name}"
        for t in tensors
    ]
    schema += [f"{_SCHEMA_TYPES[s.dtype]} {s.name}={s.value!r}" for s in scalars]
    parameters = [f"const at::Tensor& {t.name}" for t in tensors]
    parameters += scalar_parameters(signature)
    return {
        "SCHEMA": _schema_lines(signature.subject.name, schema),
        "PARAMETERS": ",\n         ".join(parameters),
        "FIRST": signature.inputs[0].name,
        "AXES": read_axes(signature),
        "CHECKS": checked_tensors(signature, _DTYPES),
        "SCALARS": scalar_casts(signature),
        "SCRATCH": _SCRATCH if signature.has_scratch else "",
    }


def _schema_lines(name: str, parameters: list[str]) -> str:
    """Return the operator's schema as C++ string literals, a few parameters each."""
    lines = [f"{name}("]
    for number, parameter in enumerate(parameters):
        word = parameter + (", " if number < len(parameters) - 1 else ") -> ()")
        if len(lines[-1]) + len(word) > _SCHEMA_WIDTH:
            lines.append("")
        lines[-1] += word
    return "\n".join(f'      "{line}"' for line in lines)


_SCRATCH = """  const at::Tensor scratch = at::empty(
      {static_cast<std::int64_t>(scratch_bytes(params))}, device_of.options().dtype(at::kByte));
  params.scratch = scratch.data_ptr();
"""


def _python_words(signature: Signature) -> dict[str, str]:
    inputs, outputs = signature.inputs, signature.outputs
    parameters = [tensor.name for tensor in inputs]
    keywords = [f"{tensor.name}=None" for tensor in outputs]
    keywords += [f"{scalar.name}={scalar.value!r}" for scalar in signature.scalars]
    body = [f"    {line}\n" for line in python_axes(signature)]
    axes = signature.subject.problem.axes
    for tensor in outputs:
        maker = "new_zeros" if has_padding(tensor, axes) else "new_empty"
        dtype = f"torch.{tensor.dtype}"
        body.append(
            f"    if {tensor.name} is None:\n        {tensor.name} = "
            f"{inputs[0].name}.{maker}({python_shape(tensor)}, dtype={dtype})\n"
        )
    every = [tensor.name for tensor in signature.subject.problem.tensors]
    every += [scalar.name for scalar in signature.scalars]
    given = [tensor.name for tensor in outputs] or [t.name for t in inputs if t.role == "inout"]
    return {
        "PYTHON_PARAMETERS": ", ".join([*parameters, *(["*", *keywords] if keywords else [])]),
        "PYTHON_BODY": "".join(body),
        "EVERY": ", ".join(every),
        "GIVEN": ", ".join(given),
        "ABOUT": _about(signature),
        "TENSOR_NAMES": repr(tuple(tensor.name for tensor in signature.subject.problem.tensors)),
        "INPUT_NAMES": repr(tuple(parameters)),
        "OUTPUT_NAMES": repr(tuple(tensor.name for tensor in outputs)),
        "ROW_TENSOR": signature.source_of(signature.axes[0]).tensor.name,
    }


def _about(signature: Signature) -> str:
    """Return the argument list of the Python function, one line a tensor."""
    lines: list[str] = []
    for tensor in (*signature.inputs, *signature.outputs):
        shape = ", ".join(tensor.shape)
        words = f"{tensor.dtype} ({shape})"
        words += ", updated in place" if tensor.role == "inout" else ""
        words += ", made if not given" if tensor.role == "out" else ""
        lines.append(f"        {tensor.name}: {words}.\n")
    lines += [f"        {scalar.name}: {scalar.dtype}.\n" for scalar in signature.scalars]
    return "".join(lines)
