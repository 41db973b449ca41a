"""Lowerings of reductions, norms, softmax and scans agree with PyTorch on the CPU."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from support.function_modules import Case, on
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

IMAGES = ((2, 3, 5, 7), (1, 3, 8, 6), (3, 3, 11, 13))
CHANNELS = ((3, 6, 5, 7), (2, 6, 4, 9), (2, 6, 3, 3))
ROWS = ((3, 33), (5, 33), (7, 33))
LONG = ((2, 300), (3, 77), (1, 1000))


def _norms(x: Any) -> Any:
    return x.norm(), x.norm(p=1, dim=2), x.norm(p=3, dim=(1, 2)), x.norm(p=float("inf"), dim=1)


CASES: dict[str, Case] = {
    "sums": on(
        lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean((2, 3)), x.mean()),
        *IMAGES,
    ),
    "products": on(lambda x: (x.prod(1), x.prod()), *IMAGES),
    "extremes": on(
        lambda x: (x.amax((1, 2)), x.amin(1, keepdim=True), x.max(), x.min(), *x.max(1), *x.min(2)),
        *IMAGES,
    ),
    "places_of_extremes": on(
        lambda x: (x.argmax(), x.argmax(1), x.argmin(2, keepdim=True), x.argmin()), *IMAGES
    ),
    "any_and_all": on(
        lambda x: ((x > 1).any(1), (x > -3).all(), (x > 2).any(), (x > -1).all(2)), *IMAGES
    ),
    "variances": on(
        lambda x: (
            *(x.var(1), x.std((2, 3)), x.var((0, 1), keepdim=True, correction=0)),
            *torch.var_mean(x, 2),
        ),
        *IMAGES,
    ),
    "vector_norms": on(_norms, *IMAGES),
    "logsumexp": on(lambda x: torch.logsumexp(x, 1), *IMAGES),
    "softmax": on(
        lambda x: (torch.softmax(x, 1), torch.log_softmax(x, -1), torch.softmax(x.sin() * 3, 2)),
        *IMAGES,
    ),
    "softmax_of_long_rows": on(lambda x: torch.softmax(x, 1), *LONG),
    "two_launches": on(
        lambda x: (x.sum(), x.mean(), x.var(), x.amax(), torch.softmax(x.flatten(), 0)),
        *((3, 101), (2, 70_000), (5, 7)),
    ),
    "layer_norm": on(nn.LayerNorm(33), *ROWS),
    "layer_norm_of_two_dimensions": on(
        nn.LayerNorm([5, 7]), (3, 2, 5, 7), (1, 4, 5, 7), (2, 2, 5, 7)
    ),
    "layer_norm_without_weights": on(nn.LayerNorm(33, elementwise_affine=False), *ROWS),
    "rms_norm": on(nn.RMSNorm(33), *ROWS),
    "group_norm": on(nn.GroupNorm(2, 6), *CHANNELS),
    "group_norm_of_rows": on(nn.GroupNorm(3, 6), (3, 6), (1, 6), (2, 6)),
    "batch_norm": on(nn.BatchNorm2d(6), *CHANNELS),
    "batch_norm_of_rows": on(nn.BatchNorm1d(6), (3, 6), (4, 6), (7, 6)),
    "batch_norm_in_eval_mode": on(nn.BatchNorm2d(6).eval(), *CHANNELS),
    "instance_norm": on(nn.InstanceNorm2d(6), *CHANNELS),
    "scans": on(lambda x: (x.cumsum(1), x.cumsum(3), x.cumprod(0), x.cumprod(-1)), *IMAGES),
    "long_scans": on(lambda x: x.cumsum(1), *LONG),
    "scan_from_the_end": on(lambda x: x.flip(1).cumsum(1).flip(1), *ROWS),
}


def test_reductions_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}


def test_blocks_of_every_size_agree_with_pytorch(tmp_path: Path) -> None:
    names = ("sums", "variances", "softmax_of_long_rows", "long_scans")
    two_launches = on(
        lambda x: (x.var(), torch.softmax(x.flatten(), 0)), (3, 101), (2, 70_000), (5, 7)
    )
    cases = {name: CASES[name] for name in names} | {"two_launches": two_launches}
    assert differences(cases, tmp_path, {"REDUCE": 1024, "PARTS": 32, "BLOCK": 512}) == {}
