"""Lowerings of matrix products and convolutions agree with PyTorch on the CPU."""

from pathlib import Path

import pytest
import torch
from torch import nn

from support.function_modules import Case, given_two, on, on_three, on_two
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

IMAGES = ((2, 3, 5, 7), (1, 3, 8, 6), (3, 3, 11, 13))
GROUPED = ((2, 6, 5, 7), (1, 6, 8, 6), (3, 6, 11, 13))
LINES = ((2, 3, 9), (1, 3, 17), (4, 3, 30))
VOLUMES = ((2, 2, 3, 5, 4), (1, 2, 4, 3, 6), (3, 2, 5, 5, 5))


def with_a_large_term(terms: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return operands whose products are 1 but for one: any that is added to it is lost."""
    left = torch.ones(17, terms)
    left[:, min(terms, 4_096) - 1] = 2.0**25
    return left, torch.ones(terms, 18)


CASES: dict[str, Case] = {
    "mm": on_two(
        torch.mm, *(((m, k), (k, n)) for m, k, n in ((3, 5, 7), (17, 33, 9), (65, 70, 77)))
    ),
    "mm_of_transposed": on_two(
        lambda x, y: x.t() @ y.t(),
        *(((k, m), (n, k)) for m, k, n in ((3, 5, 7), (17, 33, 9), (65, 70, 77))),
    ),
    "bmm": on_two(
        torch.bmm,
        *(
            ((b, m, k), (b, k, n))
            for b, m, k, n in ((2, 3, 5, 7), (3, 17, 20, 40), (2, 40, 33, 18))
        ),
    ),
    "mv": on_two(lambda x, y: x @ y, *(((m, k), (k,)) for m, k in ((3, 5), (4, 7), (9, 33)))),
    "a_long_sum": on_two(
        torch.mm, *(((m, k), (k, n)) for m, k, n in ((3, 50, 2), (3, 2300, 2), (5, 70, 1)))
    ),
    "a_sum_in_parts": given_two(torch.mm, (with_a_large_term(k) for k in (50, 20_000, 4_099))),
    "linear": on(nn.Sequential(nn.Linear(33, 20), nn.ReLU(), nn.Linear(20, 17)), (3, 33), (65, 33)),
    "linear_of_three_dimensions": on(nn.Linear(33, 20), (3, 2, 33), (5, 4, 33), (7, 9, 33)),
    "baddbmm": on_three(
        lambda a, x, y: torch.baddbmm(a, x, y, beta=0.5, alpha=2.0),
        *(
            ((b, m, n), (b, m, k), (b, k, n))
            for b, m, k, n in ((2, 3, 5, 7), (3, 17, 20, 40), (2, 40, 33, 18))
        ),
    ),
    "einsum": on_two(
        lambda x, y: torch.einsum("bijl,lk->bijk", x, y),
        *(((2, 3, 4, 5), (5, 6)), ((3, 2, 3, 7), (7, 6)), ((3, 2, 2, 9), (9, 6))),
    ),
    "conv1d": on(nn.Conv1d(3, 4, 5, padding=2), *LINES),
    "conv2d": on(nn.Conv2d(3, 8, 3, padding=1), *IMAGES),
    "conv2d_in_tiles": on(nn.Conv2d(3, 20, 3, stride=2, padding=1), *IMAGES),
    "conv2d_dilated": on(nn.Conv2d(3, 8, (2, 3), (2, 1), (2, 3), dilation=2), *IMAGES),
    "conv2d_grouped": on(nn.Conv2d(6, 12, 3, groups=3, bias=False), *GROUPED),
    "conv2d_by_depth": on(nn.Conv2d(6, 6, 3, groups=6, padding=1), *GROUPED),
    "conv3d": on(nn.Conv3d(2, 4, 3, padding=1), *VOLUMES),
    "transposed1d": on(nn.ConvTranspose1d(3, 17, 4, stride=3, padding=2), *LINES),
    "transposed2d": on(nn.ConvTranspose2d(3, 8, 3, 2, 1, output_padding=1), *IMAGES),
    "transposed2d_grouped": on(
        nn.ConvTranspose2d(6, 9, (3, 2), (1, 3), dilation=2, groups=3), *GROUPED
    ),
    "transposed2d_in_tiles": on(nn.ConvTranspose2d(3, 20, 4, stride=2, padding=1), *IMAGES),
    "transposed2d_by_group_and_residue": on(
        nn.ConvTranspose2d(6, 9, (3, 5), (1, 3), (0, 2), (0, 1), groups=3), *GROUPED
    ),
    "transposed2d_with_gaps": on(nn.ConvTranspose2d(3, 8, 2, stride=3), *IMAGES),
    "transposed2d_of_less_than_a_stride": on(nn.ConvTranspose2d(3, 8, 3, 4, padding=2), *IMAGES),
    "transposed3d": on(nn.ConvTranspose3d(2, 4, 3, stride=2), *VOLUMES),
    "transposed3d_in_tiles": on(nn.ConvTranspose3d(2, 17, 3, 2, 1, output_padding=1), *VOLUMES),
    "a_transposed_epilogue": on(
        nn.Sequential(nn.ConvTranspose2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AvgPool2d(2)), *IMAGES
    ),
    "an_epilogue": on(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)), *IMAGES
    ),
}


def test_contractions_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}


@pytest.mark.parametrize("tile", [32, 128])
def test_tiles_of_every_size_agree_with_pytorch(tile: int, tmp_path: Path) -> None:
    names = (
        "mm",
        "a_sum_in_parts",
        "bmm",
        "conv2d_in_tiles",
        "transposed1d",
        "transposed2d_in_tiles",
    )
    cases = {name: CASES[name] for name in names}
    assert differences(cases, tmp_path, {"TILE": tile, "TILE_K": 8, "BLOCK": 128}) == {}
