"""The C++ header of an export: what the caller fills in, and the functions to call."""

from kopt.kernels.problem import ScalarSpec, TensorSpec

from .file_text import comment, provenance_line
from .signature import Signature, storage_texts

_SCALAR_TYPES = {"float32": "float", "int32": "std::int32_t", "int64": "std::int64_t"}
_ROLES = {"in": "read", "out": "written", "inout": "read and written"}


def interface_file(signature: Signature) -> str:
    """Return `<name>.h`."""
    subject = signature.subject
    fields = [_tensor_field(tensor, signature) for tensor in subject.problem.tensors]
    fields += [f"  std::int64_t {axis} = 0;\n" for axis in signature.axes]
    fields += [scalar_field(scalar) for scalar in signature.scalars]
    if signature.has_scratch:
        fields.append("  void* scratch = nullptr;  // scratch_bytes(params) bytes of your own\n")
    scratch = _SCRATCH if signature.has_scratch else ""
    fixed = "".join(
        comment(f"{scalar.name} is {scalar.value!r}, a constant of the kernel.")
        for scalar in signature.fixed_scalars
    )
    return (
        f"{comment(f'{subject.name}: {subject.problem.description}')}//\n"
        f"{comment(provenance_line(subject))}"
        "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n"
        "#include <cuda_runtime_api.h>\n\n#include <cstddef>\n#include <cstdint>\n\n"
        f"namespace {subject.name} {{\n\n"
        "// Device pointers to contiguous row-major buffers.\n"
        f"{fixed}struct Params {{\n{''.join(fields)}}};\n\n{_FUNCTIONS}{scratch}"
        f"}}  // namespace {subject.name}\n"
    )


def scalar_field(scalar: ScalarSpec) -> str:
    """Return the member of Params with the problem's value as its default."""
    value = f"{scalar.value!r}f" if scalar.dtype == "float32" else str(scalar.value)
    return f"  {_SCALAR_TYPES[scalar.dtype]} {scalar.name} = {value};\n"


def _tensor_field(tensor: TensorSpec, signature: Signature) -> str:
    const = "const " if tensor.role == "in" else ""
    shape = ", ".join(storage_texts(tensor))
    words = f"{tensor.dtype} [{shape}], {_ROLES[tensor.role]}"
    words += f", aligned to {signature.alignment_bytes(tensor)} bytes."
    if tensor.static and signature.is_dependent:
        words += " Read before an earlier kernel of the stream may have ended: let none write it."
    if tensor.description:
        words += f" {tensor.description.strip()}"
    return f"{comment(words, indent=2)}  {const}void* {tensor.name} = nullptr;\n"


_FUNCTIONS = """\
// Returns why no kernel here serves `params`, a static text; nullptr if one does.
const char* unsupported(const Params& params);

// Launches on `stream`, asynchronously, on the current device. It allocates nothing and waits for
// nothing, so that it may be captured in a graph. Returns cudaErrorInvalidValue where `unsupported`
// has a reason, else what the launches return. No rows: nothing is launched, cudaSuccess.
cudaError_t launch(const Params& params, cudaStream_t stream);

"""
_SCRATCH = """\
// Returns the size of the buffer that `params.scratch` must point to, aligned to 256 bytes, for a
// shape that is not refused. What the buffer holds does not matter; calls that may overlap need one
// each.
std::size_t scratch_bytes(const Params& params);

"""
