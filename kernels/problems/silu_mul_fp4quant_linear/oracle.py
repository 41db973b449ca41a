"""Oracle of silu_mul_fp4quant_linear: packed codes and row-major scales, in float64."""

from functools import partial

from kopt.kernels.nvfp4_operators import silu_mul_expected, silu_mul_inputs

__all__ = ["expected", "make_inputs"]

make_inputs = silu_mul_inputs
expected = partial(silu_mul_expected, layout="row_major")
