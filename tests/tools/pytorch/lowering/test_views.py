"""Lowerings of views, joins and paddings agree with PyTorch on the CPU."""

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from support.function_modules import Case, on, on_two
from support.lowered_modules import differences

pytestmark = pytest.mark.slow  # torch exports each module at three shapes: a minute

MATRICES = ((3, 5), (4, 9), (7, 33))
IMAGES = ((2, 3, 5, 7), (1, 3, 8, 6), (3, 3, 11, 13))


def _assigned(x: torch.Tensor) -> torch.Tensor:
    result = x.clone()
    result[:, 1] = 0
    result[:, 2:] *= 2
    return result


CASES: dict[str, Case] = {
    "permute": on(lambda x: x.permute(2, 0, 3, 1) + 1, *IMAGES),
    "transpose": on(lambda x: x.transpose(1, 3), *IMAGES),
    "view": on(lambda x: (x * 2).reshape(x.shape[0], -1).relu(), *IMAGES),
    "view_of_permuted": on(
        lambda x: x.permute(0, 2, 3, 1).reshape(x.shape[0] * x.shape[2], -1) + 1, *IMAGES
    ),
    "slice": on(lambda x: x[:, 1:, ::2, -3:] + 1, *IMAGES),
    "select": on(lambda x: x[:, 1] * x[:, -1] + x[0, 0, 0, 0], *IMAGES),
    "flip": on(lambda x: x.flip(1, 3), *IMAGES),
    "expand": on(lambda x: x[:, :1].expand(-1, 4, -1, -1) * 2, *IMAGES),
    "squeeze": on(lambda x: x.unsqueeze(1).squeeze(1).unsqueeze(-1) + 1, *IMAGES),
    "split": on(lambda x: torch.split(x, [1, 2], 1)[1] + torch.split(x, 2, 1)[0], *IMAGES),
    "chunk": on(lambda x: torch.chunk(x, 3, 1), *IMAGES),
    "unfold": on(lambda x: x.unfold(2, 3, 2) + 0, *IMAGES),
    "cat": on_two(
        lambda x, y: torch.cat([x, y.relu(), x * 2], 1),
        *(((a, 3, b), (a, 5, b)) for a, b in ((2, 4), (3, 7), (1, 9))),
    ),
    "cat_of_many": on(lambda x: torch.cat([x + one for one in range(35)], 1), *MATRICES),
    "stack": on(lambda x: torch.stack([x, x + 1, x * 2], 1), *MATRICES),
    "pad": on(lambda x: functional.pad(x, (1, 2, 0, 3), value=0.5), *IMAGES),
    "pad_that_crops": on(lambda x: functional.pad(x, (-1, 2, 1, -1)), *IMAGES),
    "reflect": on(lambda x: functional.pad(x, (1, 2, 2, 1), mode="reflect"), *IMAGES),
    "replicate": on(lambda x: functional.pad(x, (1, 2, 2, 1), mode="replicate"), *IMAGES),
    "roll": on(lambda x: torch.roll(x, (1, 2), (2, 3)), *IMAGES),
    "repeat": on(lambda x: x.repeat(2, 1, 3, 1), *IMAGES),
    "triangles": on(lambda x: torch.tril(x) + torch.triu(x, 1) * 2, *MATRICES),
    "as_strided": on(lambda x: x.as_strided((2, 3), (3, 1), 1) + 1, *MATRICES),
    "nearest": on(lambda x: functional.interpolate(x, scale_factor=2), *IMAGES),
    "bilinear": on(lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), *IMAGES),
    "pixel_shuffle": on(
        lambda x: functional.pixel_shuffle(x, 2), (2, 8, 3, 5), (1, 8, 4, 4), (3, 8, 7, 2)
    ),
    "scatters": on(
        lambda x: (
            torch.slice_scatter(x, x[:, 1:3] * 2, 1, 1, 3),
            torch.select_scatter(x, x[:, 0] * 0, 1, 2),
        ),
        *MATRICES,
    ),
    "assignment": on(_assigned, *MATRICES),
    "an_output_twice_and_an_input": on(lambda x: ((y := x + 1), y, x), *MATRICES),
}


def test_views_agree_with_pytorch(tmp_path: Path) -> None:
    assert differences(CASES, tmp_path) == {}
