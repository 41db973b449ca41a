"""A tensor of a .safetensors file, read as an array without any code of the file's author."""

import json
import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import numpy_dtype
from kopt.tools.export.type_names import TENSOR_TYPES

_HEADER_BYTES = 1 << 20
_TENSOR_BYTES = 1 << 30
_DTYPES = {names.safetensors: dtype for dtype, names in TENSOR_TYPES.items()}


def stored_tensor(path: Path, key: str) -> npt.NDArray[Any]:
    """Return the tensor `key` of the file.

    Raises:
        ToolError: It is not there, or the file is damaged.
    """
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > _HEADER_BYTES:
                raise ValueError(f"a header of {size} bytes")
            header: dict[str, Any] = json.loads(file.read(size))
            entry = cast("dict[str, Any]", header[key])
            begin, end = (int(one) for one in entry["data_offsets"])
            shape = tuple(int(one) for one in entry["shape"])
            dtype = numpy_dtype(_DTYPES[entry["dtype"]])
            if not 0 <= begin <= end or end - begin > _TENSOR_BYTES:
                raise ValueError(f"a tensor of {end - begin} bytes")
            if end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError("its size is not that of its shape")
            file.seek(8 + size + begin)
            return np.frombuffer(file.read(end - begin), dtype).reshape(shape)
    except OSError as error:
        raise ToolError(f"cannot read {path.name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolError(f"{path.name} has no whole tensor {key!r}: {error}") from error
