"""Arrays as Ray carries them: bytes with a dtype's name, large ones once in its object store.

bfloat16 and the like are types of a package, which bytes need not be pickled with.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.tools.devices.device import Arrays

Form = tuple[str, str, tuple[int, ...]]
"""Name, dtype and shape of an array whose bytes lie beside."""
_INLINE_BYTES = 100_000
"""Ray sends what is smaller with the call itself."""


def packed(arrays: Arrays) -> tuple[list[Form], list[npt.NDArray[np.uint8]]]:
    """Return the forms of arrays, and their bytes."""
    forms = [(name, array.dtype.name, array.shape) for name, array in arrays.items()]
    return forms, [_bytes_of(array) for array in arrays.values()]


def unpacked(forms: Sequence[Form], contents: Sequence[npt.NDArray[np.uint8]]) -> Arrays:
    """Return arrays again; they share the memory of `contents`, which may be read-only."""
    return {
        name: content.view(numpy_dtype(dtype)).reshape(shape)
        for (name, dtype, shape), content in zip(forms, contents, strict=True)
    }


class StoredArrays:
    """Puts each large content into Ray's object store once; safe from several threads."""

    def __init__(self, put: Callable[[Any], Any], limit_bytes: int = 1 << 30) -> None:
        """Remember references to at most `limit_bytes`; the oldest go first."""
        self._put = put
        self._limit_bytes = limit_bytes
        self._kept: OrderedDict[bytes, tuple[int, Any]] = OrderedDict()
        self._total_bytes = 0
        self._turn = threading.Lock()

    def sendable(self, contents: Sequence[npt.NDArray[np.uint8]]) -> list[Any]:
        """Return what goes with a call: small contents themselves, references to the others."""
        return [one if one.nbytes < _INLINE_BYTES else self._stored(one) for one in contents]

    def _stored(self, content: npt.NDArray[np.uint8]) -> Any:
        digest = hashlib.blake2b(content.data, digest_size=16).digest()
        with self._turn:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest][1]
            reference = self._put(content)
            self._kept[digest] = (content.nbytes, reference)
            self._total_bytes += content.nbytes
            while self._total_bytes > self._limit_bytes and len(self._kept) > 1:
                _, (size_bytes, _) = self._kept.popitem(last=False)
                self._total_bytes -= size_bytes
            return reference


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
