"""Where a scale factor lies in memory: the 128x4 tiles that Blackwell's matrix units read.

Scale k of row m lies at ((m / 128) * ceil(K / 4) + k / 4) * 512 + (m % 32) * 16
+ ((m % 128) / 32) * 4 + k % 4, integer divisions, K scales per row. Rows are padded to 128 and
columns to 4; padding is not part of the result.

Source: NVIDIA cuBLAS documentation, "1D block scaling factors layout"; FlashInfer's 128x4 layout.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def padded_sf_128x4_shape(rows: int, columns: int) -> int:
    """Return the elements that a (rows, columns) scale matrix occupies, padding included."""
    return -(-rows // 128) * -(-columns // 4) * 512


def sf_128x4_offsets(rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Return the (rows, columns) element offsets of each scale in the padded buffer."""
    m = np.arange(rows, dtype=np.int64)[:, None]
    k = np.arange(columns, dtype=np.int64)[None, :]
    tile = (m // 128) * -(-columns // 4) + k // 4
    return tile * 512 + (m % 32) * 16 + ((m % 128) // 32) * 4 + k % 4


def to_sf_128x4(scales: npt.NDArray[Any], fill: object) -> npt.NDArray[Any]:
    """Return (..., rows, columns) `scales` as (..., padded) buffers; padding holds `fill`."""
    *batch, rows, columns = scales.shape
    tiled = np.full((*batch, padded_sf_128x4_shape(rows, columns)), fill, dtype=scales.dtype)
    tiled[..., sf_128x4_offsets(rows, columns)] = scales
    return tiled
