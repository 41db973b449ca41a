"""Oracle of silu_mul_fp4quant: packed codes and scales in 128x4 tiles, in float64."""

from collections.abc import Mapping

from kopt.kernels.nvfp4_operators import silu_mul_expected, silu_mul_inputs
from kopt.kernels.oracle import Arrays, Expected

__all__ = ["expected", "make_inputs"]

make_inputs = silu_mul_inputs


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return out and block_scale; the problem has no scalars."""
    return silu_mul_expected(inputs, layout="sf_128x4")
