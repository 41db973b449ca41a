"""`--as tvm-ffi`: a Python package that builds the sources and exports one function of TVM-FFI."""

from kopt.kernels.dtypes import dtype_size_bytes

from .file_text import filled
from .routes import Route
from .signature import Signature, checked_tensors, read_axes, scalar_casts, scalar_parameters
from .subject import flags_without_standard

_CODES = {
    "bool": "kDLBool",
    "uint8": "kDLUInt",
    "uint32": "kDLUInt",
    "int8": "kDLInt",
    "int16": "kDLInt",
    "int32": "kDLInt",
    "int64": "kDLInt",
    "float8_e4m3fn": "kDLFloat8_e4m3fn",
    "float8_e5m2": "kDLFloat8_e5m2",
    "bfloat16": "kDLBfloat",
    "float16": "kDLFloat",
    "float32": "kDLFloat",
    "float64": "kDLFloat",
}
DTYPES = {
    dtype: f"DLDataType{{{code}, {8 * dtype_size_bytes(dtype)}, 1}}"
    for dtype, code in _CODES.items()
}


def tvm_ffi_files(signature: Signature, routes: tuple[Route, ...]) -> dict[str, str]:
    """Return the files of this form beside the sources and the test."""
    subject = signature.subject
    name = subject.name
    tensors, scalars = subject.problem.tensors, signature.scalars
    number = subject.arch.removeprefix("sm_")
    digits = len(number.rstrip("af")) - 1
    parameters = [f"TensorView {tensor.name}" for tensor in tensors]
    parameters += scalar_parameters(signature)
    words = {
        "NAME": name,
        "CUDA_SOURCES": "".join(f'    "{name}_{route.tag}.cu",\n' for route in routes),
        "FLAGS": "".join(f'    "{flag}",\n' for flag in flags_without_standard(subject)),
        "TVM_ARCH": f"{number[:digits]}.{number[digits:]}",
        "PYTHON_PARAMETERS": ", ".join(
            [t.name for t in tensors] + [f"{s.name}={s.value!r}" for s in scalars]
        ),
        "EVERY": ", ".join([t.name for t in tensors] + [s.name for s in scalars]),
        "TENSOR_NAMES": repr(tuple(tensor.name for tensor in tensors)),
        **binding_words(signature, parameters, DTYPES),
        "SCALARS": scalar_casts(signature),
    }
    return {
        f"{name}/__init__.py": filled("tvm_ffi_init.py", words),
        f"{name}/csrc/tvm_ffi_binding.cu": filled("tvm_ffi_binding.cu", words),
        "test/call.py": filled("call_tvm_ffi.py", words),
    }


def binding_words(
    signature: Signature, parameters: list[str], dtypes: dict[str, str]
) -> dict[str, str]:
    """Return the words of the binding that every use of TVM-FFI shares."""
    return {
        "PARAMETERS": ",\n         ".join(parameters),
        "FIRST": signature.inputs[0].name,
        "AXES": read_axes(signature),
        "CHECKS": checked_tensors(signature, dtypes),
        "BEFORE": "",
        "SYMBOL": signature.subject.name,
        "SCRATCH": _SCRATCH if signature.has_scratch else "",
        "FREE_SCRATCH": _FREE if signature.has_scratch else "",
    }


_SCRATCH = """  require_success(cudaMallocAsync(&params.scratch, scratch_bytes(params), stream));
"""
_FREE = """  require_success(cudaFreeAsync(params.scratch, stream));
"""
