"""Arrays as one safetensors file: a JSON header with its length before it, then the bytes.

Source: the safetensors format, https://github.com/huggingface/safetensors (Format).
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int16": "I16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "int64": "I64",
    "float64": "F64",
}


def safetensors_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the file that holds `arrays` by name."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    place = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [place, place + len(data)],
        }
        parts.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begins at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
