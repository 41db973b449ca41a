"""Lowerings of recurrent layers, attention and other dtypes agree with PyTorch on the CPU."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from support.function_modules import Case, given_one, given_two, on, on_three
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

SEQUENCES = ((3, 4, 5), (2, 7, 5), (1, 9, 5))
SHAPES = ((3, 5), (4, 9), (7, 33))


class _Recurrent(nn.Module):
    """A recurrent layer that returns its output and its states."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        output, states = self.layer(x)
        return (output, *states) if isinstance(states, tuple) else (output, states)


def _integers(dtype: torch.dtype) -> Case:
    return given_two(
        lambda x, y: (
            *(x + y, x * y, x // 3, x % 3, x / 2, x.sum(1), x.amax(), x.float() * 0.5),
            *((x > y).sum(), x.cumsum(1)),
        ),
        ((_drawn(shape, 0).to(dtype), _drawn(shape, 0).to(dtype)) for shape in SHAPES),
    )


def _drawn(shape: tuple[int, int], low: int) -> torch.Tensor:
    return torch.randint(low, 50, shape)


def _floats(dtype: torch.dtype) -> dict[str, Case]:
    rows = ((3, 33), (18, 33), (65, 33))
    images = ((2, 3, 5, 7), (2, 3, 8, 6), (3, 3, 11, 13))
    mlp = (nn.Linear(33, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 17), nn.Softmax(1))
    block = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return {
        f"mlp_{dtype}": on(nn.Sequential(*mlp), *rows, dtype=dtype),
        f"block_{dtype}": on(nn.Sequential(*block), *images, dtype=dtype),
        f"sums_{dtype}": on(lambda x: (x.sum(1), x.cumsum(1), x.amax(0)), *SHAPES, dtype=dtype),
    }


CASES: dict[str, Case] = {
    "lstm": on(_Recurrent(nn.LSTM(5, 6, batch_first=True)), *SEQUENCES),
    "lstm_of_two_layers": on(
        _Recurrent(nn.LSTM(5, 6, num_layers=2, bidirectional=True)), *SEQUENCES
    ),
    "lstm_without_biases": on(_Recurrent(nn.LSTM(5, 6, bias=False)), *SEQUENCES),
    "gru": on(_Recurrent(nn.GRU(5, 6, batch_first=True)), *SEQUENCES),
    "gru_of_two_layers": on(_Recurrent(nn.GRU(5, 6, num_layers=2, bidirectional=True)), *SEQUENCES),
    "gru_without_biases": on(_Recurrent(nn.GRU(5, 6, bias=False)), *SEQUENCES),
    "rnn": on(_Recurrent(nn.RNN(5, 6, batch_first=True)), (3, 4, 5), (2, 4, 5), (5, 4, 5)),
    "attention": on_three(
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        ((1, 2, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)),
        ((3, 2, 17, 8), (3, 2, 17, 8), (3, 2, 17, 8)),
    ),
    "encoder_layer": on(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
        *((2, 5, 16), (4, 7, 16), (3, 9, 16)),
    ),
    **_floats(torch.float64),
    **_floats(torch.float16),
    **_floats(torch.bfloat16),
    **{str(one): _integers(one) for one in (torch.int32, torch.int64, torch.uint8)},
    "integers_below_zero": given_one(
        lambda x: (x // 3, x % 3, -x, x.abs(), ~x, x & 3), (_drawn(one, -50) for one in SHAPES)
    ),
    "casts": on(
        lambda x: (
            *((x * 10).to(torch.int32), (x * 10).to(torch.int64).double(), (x > 0).float()),
            *((x * 3).half(), (x * 3).bfloat16().float()),
        ),
        *SHAPES,
    ),
}


def test_networks_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}
