"""Oracle of silu_mul_fp4quant: packed codes and scales in 128x4 tiles, in float64."""

from functools import partial

from kopt.kernels.nvfp4_operators import silu_mul_expected, silu_mul_inputs

__all__ = ["expected", "make_inputs"]

make_inputs = silu_mul_inputs
expected = partial(silu_mul_expected, layout="sf_128x4")
