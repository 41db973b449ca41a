"""Kernel arguments as CUDA reads them: through the void*[], each at an aligned place."""

import ctypes
import struct

import pytest

from kopt.kernels.plan import Argument
from kopt.tools.gpu.worker.arguments import ArgumentBlock, argument_bytes
from support.host_cuda import KernelArguments

ADDRESSES = {"x": 0x7F00_1234_5600, "partial": 0x7F00_0000_0100}
TENSOR_MAP = bytes(range(128))


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (Argument(kind="tensor", name="x"), struct.pack("<Q", 0x7F00_1234_5600)),
        (Argument(kind="scratch", name="partial"), struct.pack("<Q", 0x7F00_0000_0100)),
        (Argument(kind="int32", name="H", value=-2), b"\xfe\xff\xff\xff"),
        (Argument(kind="int64", name="B * H", value=1 << 40), struct.pack("<q", 1 << 40)),
        (Argument(kind="float32", name="eps", value=1.5), b"\x00\x00\xc0\x3f"),
        (Argument(kind="float32", name="scale", value=2), b"\x00\x00\x00\x40"),
        (Argument(kind="tensor_map", name="x_map"), TENSOR_MAP),
    ],
    ids=lambda value: value.kind if isinstance(value, Argument) else "",
)
def test_an_argument_has_the_bytes_that_its_parameter_expects(
    argument: Argument, expected: bytes
) -> None:
    assert argument_bytes(argument, ADDRESSES, {"x_map": TENSOR_MAP}) == expected


def test_a_scalar_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="eps has no value"):
        argument_bytes(Argument(kind="float32", name="eps"), {}, {})


def test_every_value_lies_behind_its_pointer_at_an_aligned_place() -> None:
    values = [struct.pack("<i", 7), TENSOR_MAP, struct.pack("<Q", 9), bytes(300), b"\x01"]
    block = ArgumentBlock(values)
    arguments = KernelArguments(block.address)
    for ordinal, value in enumerate(values):
        assert arguments.raw(ordinal, len(value)) == value
        assert arguments.place(ordinal) % 128 == 0


def test_a_kernel_without_parameters_has_an_array_all_the_same() -> None:
    assert ctypes.string_at(ArgumentBlock([]).address, 8) == bytes(8)
