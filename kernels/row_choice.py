"""Calls that share rows: row i of one call is row `rows[i]` of another.

Works on storage and on logical elements, in any dtype; it computes nothing and knows no oracle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .layouts import batched_sf_128x4_offsets
from .problem import TensorSpec, storage_shape, tensor_shape

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowChoice:
    """Which rows of one call the rows of another are, and the axes of both."""

    row_axis: str
    rows: Indices
    """Row i of `target` is row `rows[i]` of `source`."""
    source: Mapping[str, int]
    target: Mapping[str, int]

    def place(self, tensor: TensorSpec) -> int | None:
        """Return which axis of `tensor` its rows are along; None for a tensor without rows."""
        return tensor.shape.index(self.row_axis) if self.row_axis in tensor.shape else None

    def along(self, place: int, array: Array) -> Array:
        """Return `array`, logical elements of `source`, with the rows of `target` along `place`."""
        return np.take(array, self.rows, axis=place)

    def stored(self, tensor: TensorSpec, array: Array) -> Array:
        """Return a buffer of `source` as one of `target`; padding of tiles holds 0.

        Args:
            tensor: What the buffer holds. Its layout is row_major, or sf_128x4 whose rows are not
                along its last axis.
            array: Storage shape.
        """
        place = self.place(tensor)
        if place is None:
            return array
        if tensor.layout == "row_major":
            return self.along(place, array)
        of, to = (
            batched_sf_128x4_offsets(tensor_shape(tensor, a)) for a in (self.source, self.target)
        )
        result = np.zeros(storage_shape(tensor, self.target), dtype=array.dtype)
        result.reshape(-1)[to] = self.along(place, array.reshape(-1)[of])
        return result
