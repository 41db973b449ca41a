"""Tensor maps turned from row-major to the driver's order, and encoded at an aligned place."""

import ctypes
from typing import Any

import pytest

from kopt.kernels.dtypes import DTYPE_SIZE_BYTES
from kopt.kernels.plan import TensorMap
from kopt.tools.gpu.worker import driver_launch
from kopt.tools.gpu.worker.arguments import encode_descriptor, tiled_map
from kopt.tools.gpu.worker.driver import CudaError
from kopt.tools.gpu.worker.driver_launch import TiledMap
from support.host_cuda import HostCuda

ENTRY = TensorMap(
    name="x_map",
    tensor="x",
    view=(6, 40, 512),
    box=(2, 8, 64),
    element_strides=(1, 2, 1),
    swizzle="128",
    l2="256",
    fill="nan",
)


def test_the_innermost_axis_comes_first() -> None:
    assert tiled_map(ENTRY, "bfloat16") == TiledMap(
        dtype=9,
        extents=(512, 40, 6),
        strides_bytes=(1024, 40 * 1024),
        box=(64, 8, 2),
        element_strides=(1, 2, 1),
        interleave=0,
        swizzle=3,
        l2_promotion=3,
        fill=1,
    )


def test_one_axis_has_no_stride() -> None:
    entry = TensorMap(name="m", tensor="x", view=(64,), box=(16,), element_strides=(1,))
    tiled = tiled_map(entry, "float32")
    assert (tiled.strides_bytes, tiled.dtype, tiled.swizzle, tiled.fill) == ((), 7, 0, 0)


@pytest.mark.parametrize("dtype", DTYPE_SIZE_BYTES)
def test_every_dtype_of_a_buffer_has_a_map_type_of_its_width(dtype: str) -> None:
    # Widths of CUtensorMapDataType, cuda.h: UINT8 … BFLOAT16.
    widths = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
    assert widths[tiled_map(ENTRY, dtype).dtype] == DTYPE_SIZE_BYTES[dtype]


@pytest.mark.parametrize(("interleave", "number"), [("none", 0), ("16", 1), ("32", 2)])
def test_interleaves_are_those_of_cuda(interleave: str, number: int) -> None:
    entry = ENTRY.model_copy(update={"interleave": interleave})
    assert tiled_map(entry, "float16").interleave == number


class _Encoder:
    """Stands for cuTensorMapEncodeTiled: writes a descriptor and remembers what it was given."""

    def __init__(self, result: int) -> None:
        self.given: list[Any] = []
        self.result = result

    def __call__(self, descriptor: int, *arguments: Any) -> int:
        self.given = [descriptor, *arguments]
        ctypes.memset(descriptor, 0xAB, 128)
        return self.result


def test_the_driver_writes_to_an_aligned_place(
    monkeypatch: pytest.MonkeyPatch, host_cuda: HostCuda
) -> None:
    encoder = _Encoder(0)
    monkeypatch.setattr(driver_launch, "_encode_tiled_entry", lambda: encoder)
    assert encode_descriptor(tiled_map(ENTRY, "bfloat16"), 0x7000) == b"\xab" * 128
    assert encoder.given[0] % 128 == 0
    dtype, rank, address, extents, strides, box, element_strides, *modes = encoder.given[1:]
    assert (dtype, rank, address, modes) == (9, 3, 0x7000, [0, 3, 3, 1])
    assert (list(extents), list(strides)[:2]) == ([512, 40, 6], [1024, 40960])
    assert (list(box), list(element_strides)) == ([64, 8, 2], [1, 2, 1])


def test_a_refused_map_is_an_error(monkeypatch: pytest.MonkeyPatch, host_cuda: HostCuda) -> None:
    monkeypatch.setattr(driver_launch, "_encode_tiled_entry", lambda: _Encoder(1))
    with pytest.raises(CudaError, match="CUDA_ERROR_INVALID_VALUE"):
        encode_descriptor(tiled_map(ENTRY, "bfloat16"), 0x7000)
