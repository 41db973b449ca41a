"""The dtypes of problems and scratch buffers: torch's names, sizes and numpy storage types."""

from typing import Any

import numpy as np

DTYPE_SIZE_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
}

# The C++ type that a candidate's pointer parameter must point to.
DTYPE_CUDA_TYPES = {
    "bool": ("bool",),
    "uint8": ("uint8_t", "unsigned char"),
    "int8": ("int8_t", "signed char"),
    "float8_e4m3fn": ("__nv_fp8_e4m3", "__nv_fp8_storage_t"),
    "float8_e5m2": ("__nv_fp8_e5m2", "__nv_fp8_storage_t"),
    "float16": ("__half",),
    "bfloat16": ("__nv_bfloat16",),
    "int16": ("int16_t", "short"),
    "float32": ("float",),
    "int32": ("int32_t", "int"),
    "uint32": ("uint32_t", "unsigned int"),
    "int64": ("int64_t", "long long"),
    "float64": ("double",),
}


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
