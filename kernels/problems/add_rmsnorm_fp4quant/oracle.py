"""Oracle of add_rmsnorm_fp4quant: residual, codes and row-major scales, in float64."""

from functools import partial

from kopt.kernels.nvfp4_operators import add_rmsnorm_expected, add_rmsnorm_inputs

__all__ = ["expected", "make_inputs"]

make_inputs = add_rmsnorm_inputs
expected = partial(add_rmsnorm_expected, layout="row_major")
