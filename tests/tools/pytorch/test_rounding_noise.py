"""Sampled roundings: results are moved by as much as is asked for, in blocks as in one piece."""

from typing import Any

import pytest

from kopt.tools.pytorch import rounding_noise
from kopt.tools.pytorch.rounding_noise import Roundings
from kopt.tools.pytorch.torch_library import load_torch

torch = load_torch()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several blocks, the last of them shorter, in few elements."""
    monkeypatch.setattr(rounding_noise, "BLOCK_ELEMENTS", 1000)


def _roundings(seed: int = 1) -> Roundings:
    return Roundings(torch, torch.Generator().manual_seed(seed))


def _deviation(away: Any) -> float:
    return float(away.square().mean().sqrt())


def test_each_block_is_moved_by_the_deviation_of_its_elements() -> None:
    exact = torch.ones(7, 400, dtype=torch.float64)
    wanted = 1e-3 * torch.arange(1.0, 8.0, dtype=torch.float64).reshape(7, 1)
    away = torch.stack(
        [
            _roundings(seed).moved(exact, lambda _, size: size.clone(), wanted) - exact
            for seed in range(400)
        ]
    )
    for row in range(7):
        assert _deviation(away[:, row]) == pytest.approx(float(wanted[row]), rel=0.05)


def test_half_of_the_variance_is_common_to_all_blocks_with_the_sign_of_what_it_moves() -> None:
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(1250)
    common = [
        float(((_roundings(seed).rounded(signs) - signs) * signs).mean()) for seed in range(400)
    ]
    unit = rounding_noise.UNIT["float32"]
    assert _deviation(torch.tensor(common) / unit) == pytest.approx(0.5**0.5, rel=0.1)


def test_elements_of_different_blocks_have_roundings_of_their_own() -> None:
    exact = torch.ones(2000, dtype=torch.float64)
    moved = _roundings().rounded(exact)
    assert not torch.equal(moved[:1000], moved[1000:])


def test_infinities_and_what_has_no_size_stay() -> None:
    exact = torch.tensor([float("inf"), float("-inf"), 0.0], dtype=torch.float64)
    assert torch.equal(_roundings().rounded(exact), exact)


def test_a_transposed_result_is_moved_element_by_element() -> None:
    exact = torch.arange(1.0, 2401.0, dtype=torch.float64).reshape(40, 60).T
    moved = _roundings().rounded(exact)
    assert moved.shape == exact.shape
    assert float(((moved - exact) / exact).abs().max()) < 4 * rounding_noise.UNIT["float32"]
