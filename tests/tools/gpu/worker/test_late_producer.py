"""The parameter of the late producer, and which inputs it brings."""

import struct

import pytest

from kopt.config.errors import InfraError
from kopt.kernels.problem import Problem
from kopt.tools.gpu.worker.execution import (
    DELAY_CYCLES,
    LateCopy,
    copies_parameter,
    late_inputs,
)


def test_static_inputs_and_outputs_are_not_late(compile_problem: Problem) -> None:
    assert late_inputs(compile_problem) == ("x",)


def test_the_parameter_has_the_layout_of_the_kernels_structure() -> None:
    parameter = copies_parameter([LateCopy(1, 2, 3), LateCopy(4, 5, 6)])
    assert len(parameter) == 16 + 128 * 24
    assert struct.unpack_from("<8Q", parameter) == (2, DELAY_CYCLES, 1, 2, 3, 4, 5, 6)


def test_the_kernel_has_room_for_128_inputs() -> None:
    parameter = copies_parameter([LateCopy(0, 0, 1)] * 127 + [LateCopy(4, 5, 6)])
    assert struct.unpack_from("<Q", parameter) == (128,)
    assert struct.unpack("<3Q", parameter[-24:]) == (4, 5, 6)


def test_more_inputs_than_the_kernel_has_room_for_are_refused() -> None:
    with pytest.raises(InfraError, match="129 inputs"):
        copies_parameter([LateCopy(0, 0, 0)] * 129)
