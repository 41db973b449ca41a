"""What kernels give that round the sum and the normed sum to bfloat16."""

from collections.abc import Mapping

from kopt.kernels.oracle import Arrays, Between
from kopt.kernels.rmsnorm import add_rmsnorm_in_steps


def expected_in_steps(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Between]:
    """Return `normed_out` before its last rounding."""
    x, residual, weight = inputs["input"], inputs["residual"], inputs["weight"]
    return {"normed_out": add_rmsnorm_in_steps(x, residual, weight, scalars["eps"])}
