"""Oracle of add_rmsnorm_fp4quant: residual, codes and row-major scales, in float64."""

from collections.abc import Mapping

from kopt.kernels.nvfp4_operators import add_rmsnorm_expected, add_rmsnorm_inputs
from kopt.kernels.oracle import Arrays, Expected

__all__ = ["expected", "make_inputs"]

make_inputs = add_rmsnorm_inputs


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return residual, out and block_scale."""
    return add_rmsnorm_expected(inputs, scalars, layout="row_major")
