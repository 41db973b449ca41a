"""The dtypes of problems and scratch buffers: torch's names, sizes and numpy storage types."""

from typing import Any

import numpy as np

# Size in bytes, what authors write for it in CUDA, and the types that it may be to the compiler.
_DTYPES = {
    "bool": (1, "bool", ("bool",)),
    "uint8": (1, "uint8_t", ("unsigned char",)),
    "int8": (1, "int8_t", ("signed char",)),
    "float8_e4m3fn": (1, "__nv_fp8_e4m3", ("__nv_fp8_e4m3", "unsigned char")),
    "float8_e5m2": (1, "__nv_fp8_e5m2", ("__nv_fp8_e5m2", "unsigned char")),
    "float16": (2, "__half", ("__half",)),
    "bfloat16": (2, "__nv_bfloat16", ("__nv_bfloat16",)),
    "int16": (2, "int16_t", ("short",)),
    "float32": (4, "float", ("float",)),
    "int32": (4, "int32_t", ("int",)),
    "uint32": (4, "uint32_t", ("unsigned int",)),
    "int64": (8, "int64_t", ("long long", "long")),
    "float64": (8, "double", ("double",)),
}
DTYPE_SIZE_BYTES = {name: size for name, (size, _, _) in _DTYPES.items()}
DTYPE_CUDA_TYPES = {name: written for name, (_, written, _) in _DTYPES.items()}
DTYPE_SPELLINGS = {name: spellings for name, (_, _, spellings) in _DTYPES.items()}
"""Accepted element types. `uint8_t`, `int64_t` and `__nv_fp8_storage_t` are names of these."""

UNSIGNED_SPELLINGS = {
    "int32": ("unsigned int",),
    "int64": ("unsigned long long", "unsigned long"),
}
"""What an axis or an expression may be passed as beside its own type: the bits are the same."""


def dtype_size_bytes(dtype: str) -> int:
    """Return the bytes of one element.

    Raises:
        KeyError: `dtype` is not one of `DTYPE_SIZE_BYTES`.
    """
    return DTYPE_SIZE_BYTES[dtype]


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the numpy type that holds `dtype`; bfloat16 and fp8 are those of ml_dtypes.

    ml_dtypes only stores and decodes here. Rounding into a narrow type is `rounding.py`'s:
    ml_dtypes rounds twice from float64 and turns e4m3 overflow into NaN.
    """
    import ml_dtypes

    narrow = {
        "bfloat16": ml_dtypes.bfloat16,
        "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
        "float8_e5m2": ml_dtypes.float8_e5m2,
    }
    result: np.dtype[Any] = np.dtype(narrow.get(dtype, dtype))
    return result
