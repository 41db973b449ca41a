"""Oracle of nvfp4_quantize: packed codes and scales in 128x4 tiles, in float64."""

from collections.abc import Mapping

from kopt.kernels.nvfp4_operators import quantize_expected, quantize_inputs
from kopt.kernels.oracle import Arrays, Expected

__all__ = ["expected", "make_inputs"]

make_inputs = quantize_inputs


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return out and block_scale; the problem has no scalars."""
    return quantize_expected(inputs, layout="sf_128x4")
