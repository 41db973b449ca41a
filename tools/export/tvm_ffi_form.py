"""`--as tvm-ffi`: a Python package that builds the sources and exports one function of TVM-FFI."""

from .file_text import filled
from .routes import Route
from .signature import Signature
from .subject import flags_without_standard
from .type_names import DLPACK_DTYPES


def tvm_ffi_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of this form beside the sources and the test."""
    subject, name = signature.subject, signature.subject.name
    tensors, scalars = subject.problem.tensors, signature.scalars
    number = subject.arch.removeprefix("sm_")
    digits = len(number.rstrip("af")) - 1
    words = {
        **signature.words,
        "routes": routes,
        "flags": flags_without_standard(subject),
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
