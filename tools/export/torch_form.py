"""`--as torch`: a Python package that builds the sources and registers one operator."""

from .file_text import filled
from .routes import Route
from .signature import Signature
from .subject import flags_without_standard, gencode
from .type_names import SCALAR_TYPES, TORCH_DTYPES

_SCHEMA_WIDTH = 90


def torch_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of this form beside the sources and the test."""
    subject, name = signature.subject, signature.subject.name
    tensors, inputs, outputs = subject.problem.tensors, signature.inputs, signature.outputs
    keywords = [f"{tensor.name}=None" for tensor in outputs]
    keywords += [f"{scalar.name}={scalar.value!r}" for scalar in signature.scalars]
    given = [tensor.name for tensor in outputs] or [t.name for t in inputs if t.role == "inout"]
    words = {
        **signature.words,
        "routes": routes,
        "flags": (*flags_without_standard(subject), gencode(subject)),
        "dtypes": TORCH_DTYPES,
        "schema": _schema_lines(signature),
        "parameters": signature.cpp_parameters("const at::Tensor&", tensors),
        "python_parameters": [t.name for t in inputs] + (["*", *keywords] if keywords else []),
        "given": given,
    }
    return {
        f"{name}/__init__.py": filled("torch_init.py", **words),
        f"{name}/csrc/torch_binding.cpp": filled("torch_binding.cpp", **words),
        "test/call.py": filled("call_torch.py", **words),
        "test/test_operator.py": filled("test_operator.py", **words),
    }


def _schema_lines(signature: Signature) -> list[str]:
    """Return the operator's schema, a few parameters a line."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    parameters = [
        f"Tensor{'' if t.role == 'in' else f'({next(letters)}!)'} {t.name}"
        for t in signature.subject.problem.tensors
    ]
    parameters += [
        f"{SCALAR_TYPES[s.dtype].schema} {s.name}={s.value!r}" for s in signature.scalars
    ]
    lines = [f"{signature.subject.name}("]
    for number, parameter in enumerate(parameters):
        word = parameter + (", " if number < len(parameters) - 1 else ") -> ()")
        if len(lines[-1]) + len(word) > _SCHEMA_WIDTH:
            lines.append("")
        lines[-1] += word
    return lines
