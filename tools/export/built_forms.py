"""The forms that are built where they are used: C++, a package for torch, a package for TVM-FFI.

Each function gives what its form has beside the sources and the test that all of them share.
"""

from .exported_kernel import flags_without_standard, gencode, nvcc_flags
from .file_text import filled
from .routes import Route
from .signature import Signature
from .type_names import DLPACK_DTYPES, SCALAR_TYPES, TORCH_DTYPES

_SCHEMA_WIDTH = 90


def cuda_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of `--as cuda`: a static library and a test program."""
    name = signature.exported.name
    flags = nvcc_flags(signature.exported)
    words = {
        **signature.words,
        "arch_number": signature.exported.arch.removeprefix("sm_"),
        "sources": [f"{name}.cu", *(f"{name}_{route.tag}.cu" for route in routes)],
        "flags": flags,
        "cmake_flags": " ".join(f for f in flags if not f.startswith(("-std", "-O"))),
    }
    templates = {
        "Makefile": "Makefile",
        "CMakeLists.txt": "CMakeLists.txt",
        "test/run_case.cpp": "run_case.cpp",
        "test/call.py": "call_cuda.py",
    }
    return {path: filled(template, **words) for path, template in templates.items()}


def torch_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of `--as torch`: a Python package that registers one operator."""
    exported, name = signature.exported, signature.exported.name
    tensors, inputs, outputs = exported.problem.tensors, signature.inputs, signature.outputs
    keywords = [f"{tensor.name}=None" for tensor in outputs]
    keywords += [f"{scalar.name}={scalar.value!r}" for scalar in signature.scalars]
    given = [tensor.name for tensor in outputs] or [t.name for t in inputs if t.role == "inout"]
    words = {
        **signature.words,
        "routes": routes,
        "flags": (*flags_without_standard(exported), gencode(exported)),
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


def tvm_ffi_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of `--as tvm-ffi`: a Python package that exports one function."""
    exported, name = signature.exported, signature.exported.name
    tensors, scalars = exported.problem.tensors, signature.scalars
    number = exported.arch.removeprefix("sm_")
    digits = len(number.rstrip("af")) - 1
    words = {
        **signature.words,
        "routes": routes,
        "flags": flags_without_standard(exported),
        "tvm_arch": f"{number[:digits]}.{number[digits:]}",
        "dtypes": DLPACK_DTYPES,
        "parameters": signature.cpp_parameters("TensorView", tensors),
        "python_parameters": [t.name for t in tensors] + [f"{s.name}={s.value!r}" for s in scalars],
        "copied": {},
        "symbol": name,
    }
    return {
        f"{name}/__init__.py": filled("tvm_ffi_init.py", **words),
        f"{name}/csrc/tvm_ffi_binding.cu": filled("tvm_ffi_binding.cu", **words),
        "test/call.py": filled("call_tvm_ffi.py", **words),
    }


def _schema_lines(signature: Signature) -> list[str]:
    """Return the operator's schema, a few parameters a line."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    parameters = [
        f"Tensor{'' if t.role == 'in' else f'({next(letters)}!)'} {t.name}"
        for t in signature.exported.problem.tensors
    ]
    parameters += [
        f"{SCALAR_TYPES[s.dtype].schema} {s.name}={s.value!r}" for s in signature.scalars
    ]
    lines = [f"{signature.exported.name}("]
    for number, parameter in enumerate(parameters):
        word = parameter + (", " if number < len(parameters) - 1 else ") -> ()")
        if len(lines[-1]) + len(word) > _SCHEMA_WIDTH:
            lines.append("")
        lines[-1] += word
    return lines
