"""Tensor maps turned from row-major to the driver's order, and encoded at an aligned place."""

import ctypes
import re
from typing import Any

import pytest

from kopt.kernels.dtypes import DTYPE_SIZE_BYTES
from kopt.kernels.plan import TensorMap
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.gpu.worker import driver_launch
from kopt.tools.gpu.worker.arguments import encode_descriptor, tiled_map
from kopt.tools.gpu.worker.driver import CudaError
from kopt.tools.gpu.worker.driver_launch import TiledMap
from support.host_cuda import HostCuda

_ENUM = re.compile(r"^typedef enum CUtensorMap\w+_enum \{(.*?)\}", re.DOTALL | re.MULTILINE)
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


@pytest.fixture(scope="module")
def numbers() -> dict[str, int]:
    """The number of every mode of tensor maps in CUDA's header: 0, 1, ... in each enumeration."""
    (header,) = (f / "cuda.h" for f in cuda_include_folders() if (f / "cuda.h").is_file())
    modes = [re.findall(r"CU_TENSOR_MAP_\w+", body) for body in _ENUM.findall(header.read_text())]
    return {name: number for names in modes for number, name in enumerate(names)}


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
def test_every_dtype_of_a_buffer_has_a_map_type_of_its_width(
    dtype: str, numbers: dict[str, int]
) -> None:
    names = {number: name for name, number in numbers.items() if "_DATA_TYPE_" in name}
    of_map = names[tiled_map(ENTRY, dtype).dtype].removeprefix("CU_TENSOR_MAP_DATA_TYPE_")
    bits = re.search(r"\d+$", of_map)
    assert bits is not None
    assert int(bits[0]) == 8 * DTYPE_SIZE_BYTES[dtype]
    if dtype.upper() in {name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_") for name in numbers}:
        assert of_map == dtype.upper()


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("interleave", "none", "INTERLEAVE_NONE"),
        ("interleave", "16", "INTERLEAVE_16B"),
        ("interleave", "32", "INTERLEAVE_32B"),
        ("swizzle", "none", "SWIZZLE_NONE"),
        ("swizzle", "32", "SWIZZLE_32B"),
        ("swizzle", "64", "SWIZZLE_64B"),
        ("swizzle", "128", "SWIZZLE_128B"),
        ("l2", "none", "L2_PROMOTION_NONE"),
        ("l2", "64", "L2_PROMOTION_L2_64B"),
        ("l2", "128", "L2_PROMOTION_L2_128B"),
        ("l2", "256", "L2_PROMOTION_L2_256B"),
        ("fill", "zero", "FLOAT_OOB_FILL_NONE"),
        ("fill", "nan", "FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"),
    ],
)
def test_modes_have_the_numbers_of_cuda(
    field: str, value: str, name: str, numbers: dict[str, int]
) -> None:
    tiled = tiled_map(ENTRY.model_copy(update={field: value}), "float16")
    found = tiled.l2_promotion if field == "l2" else getattr(tiled, field)
    assert found == numbers[f"CU_TENSOR_MAP_{name}"]


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
