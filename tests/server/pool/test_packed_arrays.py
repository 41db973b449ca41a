"""Arrays on their way through Ray."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.server.pool.packed_arrays import StoredArrays, packed, unpacked


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.array(7, dtype=np.int64),
        np.zeros((0, 4), dtype=np.float16),
        np.arange(4).astype(ml_dtypes.bfloat16),
        np.arange(4).astype(ml_dtypes.float8_e4m3fn),
    ],
    ids=str,
)
def test_an_array_comes_out_as_it_went_in(array: npt.NDArray[Any]) -> None:
    forms, contents = packed({"x": array})
    assert contents[0].dtype == np.uint8
    (out,) = unpacked(forms, contents).values()
    assert (out.dtype, out.shape) == (array.dtype, array.shape)
    assert out.tobytes() == array.tobytes()


def test_a_large_content_is_stored_once_and_a_small_one_never() -> None:
    puts: list[int] = []

    def put(content: npt.NDArray[np.uint8]) -> str:
        puts.append(content.nbytes)
        return f"reference {len(puts)}"

    stored = StoredArrays(put, limit_bytes=500_000)
    large, other = np.zeros(300_000, np.uint8), np.ones(300_000, np.uint8)
    small = np.zeros(10, np.uint8)
    assert stored.sendable([large, small, large]) == ["reference 1", small, "reference 1"]
    assert stored.sendable([other]) == ["reference 2"]  # and the first is forgotten
    assert stored.sendable([large]) == ["reference 3"]
    assert len(puts) == 3
