"""Lowerings of pointwise operators agree with PyTorch on the CPU."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from support.function_modules import Case, on, on_three, on_two
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

SHAPES = ((3, 5), (4, 9), (7, 33))
PAIRS = tuple((one, one) for one in SHAPES)

_FUNCTIONS = (
    *(torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.abs, torch.neg, torch.sin, torch.cos),
    *(torch.floor, torch.ceil, torch.round, torch.erf, torch.expm1, torch.sign, torch.square),
    *(functional.silu, functional.mish, functional.hardswish, functional.hardsigmoid),
    *(functional.softplus, functional.gelu, functional.elu, functional.selu, functional.celu),
    *(functional.logsigmoid, functional.softsign, functional.tanhshrink, functional.hardtanh),
    *(functional.relu6, functional.leaky_relu),
)
CASES: dict[str, Case] = {
    **{one.__name__: on(one, *SHAPES) for one in _FUNCTIONS},
    "positive_arguments": on(
        lambda x: (
            *(torch.log(x.abs() + 0.1), torch.log1p(x.abs()), torch.sqrt(x.abs())),
            *(torch.rsqrt(x.abs() + 1), torch.reciprocal(x.abs() + 1)),
        ),
        *SHAPES,
    ),
    "gelu_by_tanh": on(lambda x: functional.gelu(x, approximate="tanh"), *SHAPES),
    "arithmetic": on_two(
        lambda x, y: (x + 2 * y - y / 3) * x.clamp(-1, 1) + torch.minimum(x, y), *PAIRS
    ),
    "bounds": on_two(lambda x, y: (x.clamp(min=0), x.clamp(max=y), torch.maximum(x, y)), *PAIRS),
    "powers": on(lambda x: (x**2, x.abs() ** 2.5, 2**x, x**3, x.abs() ** 0.5), *SHAPES),
    "comparisons": on_two(
        lambda x, y: (
            x > y,
            (x == y) | (x < 0),
            torch.logical_not(x > 0),
            torch.where(x > y, x, y),
        ),
        *PAIRS,
    ),
    "remainders": on_two(
        lambda x, y: (
            *(torch.fmod(x, 0.7), torch.remainder(x, 0.7)),
            *(torch.div(x, y, rounding_mode="floor"), torch.div(x, 0.3, rounding_mode="trunc")),
        ),
        *PAIRS,
    ),
    "broadcasts": on_three(
        lambda x, y, z: x * y + z,
        *(((a, 1, b), (4, 1), (b,)) for a, b in ((3, 5), (2, 7), (9, 33))),
    ),
    "a_dear_value_with_two_readers": on(
        lambda x: (torch.relu(x), torch.relu(x) + torch.exp(torch.sin(x)).cos() * torch.tanh(x)),
        *SHAPES,
    ),
}


def test_pointwise_operators_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}


def test_nan_and_infinities_go_where_pytorch_lets_them(tmp_path: Path) -> None:
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -1.5])
    module, _ = on(
        lambda x: (
            *(torch.relu(x), x.clamp(-1, 1), torch.maximum(x, -x), x.isnan(), x.isinf()),
            *(torch.softmax(x[1:4:2], 0), x.amax(), x.argmax(), x.max(0).indices),
        ),
        (5,),
    )
    inputs = [(special,), (special.flip(0),)]
    assert differences({"special": (module, inputs)}, tmp_path) == {}
