"""C++ of a tensor map: the descriptor that a launch takes by value."""

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.header import TensorMapTemplate

from .expression_code import cpp_expression
from .signature import Signature, storage_texts

_TYPES = {
    "bool": "UINT8",
    "uint8": "UINT8",
    "int8": "UINT8",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
    "int16": "UINT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "bfloat16": "BFLOAT16",
}
_INTERLEAVES = {"none": "NONE", "16": "16B", "32": "32B"}
_SWIZZLES = {"none": "NONE", "32": "32B", "64": "64B", "128": "128B"}
_L2 = {"none": "NONE", "64": "L2_64B", "128": "L2_128B", "256": "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


def map_texts(signature: Signature, name: str) -> tuple[str, ...]:
    """Return every expression of a tensor map, those of its tensor's shape where it has no view."""
    entry = _entry(signature, name)
    return (*_view(signature, entry), *entry.box, *(entry.element_strides or ()))


def encoded_map(signature: Signature, name: str) -> str:
    """Return the lines that declare and encode a tensor map."""
    entry = _entry(signature, name)
    dtype, shape = _buffer(signature, entry)
    rank = len(entry.view or shape)
    strides = entry.element_strides or ("1",) * rank
    lists = ", ".join(
        "{" + ", ".join(cpp_expression(text) for text in texts) + "}"
        for texts in (_view(signature, entry), entry.box, strides)
    )
    is_scratch = any(buffer.name == entry.tensor for buffer in signature.subject.header.scratch)
    address = f"{entry.tensor}.address" if is_scratch else f"params.{entry.tensor}"
    return (
        f"  CUtensorMap {name};\n"
        f"  error = encode(&{name},\n"
        f"                 TiledMap<{rank}>{{CU_TENSOR_MAP_DATA_TYPE_{_TYPES[dtype]},"
        f" {dtype_size_bytes(dtype)}, {lists},\n"
        f"                             CU_TENSOR_MAP_INTERLEAVE_{_INTERLEAVES[entry.interleave]},"
        f" CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[entry.swizzle]},\n"
        f"                             CU_TENSOR_MAP_L2_PROMOTION_{_L2[entry.l2]},\n"
        f"                             CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[entry.fill]}}},\n"
        f"                 {address});\n"
        "  if (error != cudaSuccess) return error;\n"
    )


def _entry(signature: Signature, name: str) -> TensorMapTemplate:
    return next(one for one in signature.subject.header.tensor_maps if one.name == name)


def _view(signature: Signature, entry: TensorMapTemplate) -> tuple[str, ...]:
    return entry.view or _buffer(signature, entry)[1]


def _buffer(signature: Signature, entry: TensorMapTemplate) -> tuple[str, tuple[str, ...]]:
    """Return dtype and shape of the tensor or scratch buffer below a map."""
    for buffer in signature.subject.header.scratch:
        if buffer.name == entry.tensor:
            return buffer.dtype, buffer.shape
    tensor = signature.subject.problem.tensor(entry.tensor)
    return tensor.dtype, storage_texts(tensor) or ("1",)
