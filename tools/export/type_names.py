"""What the dtypes of tensors and scalars are called in the languages and formats of an export."""

from typing import NamedTuple

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import ScalarSpec


class TypeNames(NamedTuple):
    """The names of one dtype of tensors."""

    torch: str
    """In `at::`."""
    dlpack: str
    tensor_map: str
    """Behind CU_TENSOR_MAP_DATA_TYPE_."""
    safetensors: str


class ScalarNames(NamedTuple):
    """The names of one dtype of scalars."""

    member: str
    """C++ type in Params."""
    parameter: str
    """C++ type in a binding's function."""
    schema: str
    """Type in a schema of torch."""


TENSOR_TYPES = {
    "bool": TypeNames("kBool", "kDLBool", "UINT8", "BOOL"),
    "uint8": TypeNames("kByte", "kDLUInt", "UINT8", "U8"),
    "int8": TypeNames("kChar", "kDLInt", "UINT8", "I8"),
    "float8_e4m3fn": TypeNames("kFloat8_e4m3fn", "kDLFloat8_e4m3fn", "UINT8", "F8_E4M3"),
    "float8_e5m2": TypeNames("kFloat8_e5m2", "kDLFloat8_e5m2", "UINT8", "F8_E5M2"),
    "int16": TypeNames("kShort", "kDLInt", "UINT16", "I16"),
    "float16": TypeNames("kHalf", "kDLFloat", "FLOAT16", "F16"),
    "bfloat16": TypeNames("kBFloat16", "kDLBfloat", "BFLOAT16", "BF16"),
    "int32": TypeNames("kInt", "kDLInt", "INT32", "I32"),
    "uint32": TypeNames("kUInt32", "kDLUInt", "UINT32", "U32"),
    "float32": TypeNames("kFloat", "kDLFloat", "FLOAT32", "F32"),
    "int64": TypeNames("kLong", "kDLInt", "INT64", "I64"),
    "float64": TypeNames("kDouble", "kDLFloat", "FLOAT64", "F64"),
}
SCALAR_TYPES = {
    "float32": ScalarNames("float", "double", "float"),
    "int32": ScalarNames("std::int32_t", "std::int64_t", "int"),
    "int64": ScalarNames("std::int64_t", "std::int64_t", "int"),
}
TORCH_DTYPES = {dtype: f"at::{names.torch}" for dtype, names in TENSOR_TYPES.items()}
DLPACK_DTYPES = {
    dtype: f"DLDataType{{{names.dlpack}, {8 * dtype_size_bytes(dtype)}, 1}}"
    for dtype, names in TENSOR_TYPES.items()
}


def cpp_constant(scalar: ScalarSpec) -> str:
    """Return the problem's value of a scalar as a C++ literal."""
    return f"{scalar.value!r}f" if scalar.dtype == "float32" else str(scalar.value)
