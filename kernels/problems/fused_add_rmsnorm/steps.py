"""What kernels give that round the sum and the normed sum to bfloat16."""

from collections.abc import Mapping

from kopt.kernels.oracle import Arrays, Between
from kopt.kernels.rmsnorm import add_rmsnorm_in_steps


def expected_in_steps(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Between]:
    """Return `input` before its last rounding."""
    x, residual, weight = inputs["input"], inputs["residual"], inputs["weight"]
    return {"input": add_rmsnorm_in_steps(x, residual, weight, scalars["eps"])}
