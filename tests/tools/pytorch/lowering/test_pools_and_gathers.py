"""Lowerings of pools, gathers and losses agree with PyTorch on the CPU."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from support.function_modules import Case, given_three, given_two, on, on_two
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

IMAGES = ((2, 3, 5, 7), (1, 3, 8, 6), (3, 3, 11, 13))
LINES = ((2, 3, 9), (1, 3, 17), (4, 3, 30))
VOLUMES = ((2, 2, 3, 5, 4), (1, 2, 4, 3, 6), (3, 2, 5, 5, 5))
MATRICES = ((3, 5), (4, 9), (7, 33))
SIZES = ((3, 5, 2), (2, 7, 9), (5, 9, 4))


def _integers(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


CASES: dict[str, Case] = {
    "max_pool1d": on(nn.MaxPool1d(3, 2), *LINES),
    "max_pool2d": on(nn.MaxPool2d(3, 2, 1), *IMAGES),
    "max_pool2d_with_places": on(nn.MaxPool2d(2, return_indices=True), *IMAGES),
    "max_pool2d_dilated": on(nn.MaxPool2d(2, 2, dilation=2, ceil_mode=True), *IMAGES),
    "max_pool3d": on(nn.MaxPool3d(2), *VOLUMES),
    "avg_pool1d": on(nn.AvgPool1d(3, 2, 1), *LINES),
    "avg_pool2d": on(nn.AvgPool2d(3, 2, 1), *IMAGES),
    "avg_pool2d_without_padding": on(
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), *IMAGES
    ),
    "avg_pool2d_beyond_the_edge": on(nn.AvgPool2d(3, 2, 1, ceil_mode=True), *IMAGES),
    "avg_pool3d": on(nn.AvgPool3d(2), *VOLUMES),
    "adaptive_average": on(nn.AdaptiveAvgPool2d((2, 3)), *IMAGES),
    "adaptive_average_of_all": on(nn.AdaptiveAvgPool2d(1), *IMAGES),
    "adaptive_average3d": on(nn.AdaptiveAvgPool3d((2, 2, 2)), *VOLUMES),
    "embedding": (
        nn.Embedding(11, 6),
        [(_integers(11, *shape),) for shape in ((3, 2), (5, 4), (2, 9))],
    ),
    "gather": given_two(
        lambda x, at: torch.gather(x, 1, at),
        ((torch.randn(n, m), _integers(m, n, k)) for n, m, k in SIZES),
    ),
    "index_select": given_two(
        lambda x, at: torch.index_select(x, 1, at) + 1,
        ((torch.randn(n, m), _integers(m, k)) for n, m, k in SIZES),
    ),
    "index": given_three(
        lambda x, i, j: (x[i, j], x[:, i], x[i, :]),
        ((torch.randn(n, n, m), _integers(n, k), _integers(n, k)) for n, m, k in SIZES),
    ),
    "index_from_the_end": given_two(
        lambda x, at: x[-at - 1], ((torch.randn(n, m), _integers(n, k)) for n, m, k in SIZES)
    ),
    "arange": on(lambda x: x + torch.arange(x.shape[1]) * 0.5, *MATRICES),
    "cross_entropy": given_two(
        lambda x, at: (functional.cross_entropy(x, at), functional.nll_loss(x, at)),
        ((torch.randn(n, m), _integers(m, n)) for n, m, _ in SIZES),
    ),
    "losses": on_two(
        lambda x, y: (
            *(functional.mse_loss(x, y), functional.smooth_l1_loss(x, y)),
            functional.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
            *(functional.hinge_embedding_loss(x, y.sign()), functional.cosine_similarity(x, y)),
        ),
        *((one, one) for one in MATRICES),
    ),
}


def test_pools_and_gathers_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}
