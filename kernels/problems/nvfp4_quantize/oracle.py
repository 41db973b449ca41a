"""Oracle of nvfp4_quantize: packed codes and scales in 128x4 tiles, in float64."""

from functools import partial

from kopt.kernels.nvfp4_operators import quantize_expected, quantize_inputs

__all__ = ["expected", "make_inputs"]

make_inputs = quantize_inputs
expected = partial(quantize_expected, layout="sf_128x4")
