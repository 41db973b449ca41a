"""Each regime has the amplitudes that it promises."""

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels import row_chunks, wide_work
from kopt.kernels.input_regimes import REGIMES, Magnitudes, draw_amplitudes, draw_values

MAGNITUDES = Magnitudes(tiny=2.0**-7, huge=2.0**9)
SHAPE = (24, 640)


def _amplitudes(regime: str, seed: int = 1) -> npt.NDArray[np.float32]:
    drawn = draw_amplitudes(np.random.default_rng(seed), SHAPE, regime, MAGNITUDES)
    return np.broadcast_to(drawn, SHAPE)


@pytest.mark.parametrize(("regime", "factor"), [("normal", 1.0), ("tiny", 2**-7), ("huge", 2**9)])
def test_uniform_regimes_multiply_everything_by_one_factor(regime: str, factor: float) -> None:
    assert (_amplitudes(regime) == factor).all()


def test_even_rows_have_one_outlier_and_odd_rows_about_sixteen() -> None:
    amplitudes = _amplitudes("outliers")
    assert set(np.unique(amplitudes)) == {1, 1000}
    counts = (amplitudes == 1000).sum(axis=1)
    assert (counts[::2] == 1).all()
    assert (counts[1::2] <= 16).all()
    assert (counts[1::2] >= 12).all()  # columns may be drawn twice


def test_odd_rows_have_outliers_at_both_ends_and_together_in_many_columns() -> None:
    odd = _amplitudes("outliers")[1::2] == 1000
    assert odd[:, :16].any(axis=1).all()
    assert odd[:, -16:].any(axis=1).all()
    assert odd.any(axis=0).sum() >= 150  # 12 rows of 14 distinct columns


@pytest.mark.parametrize("seed", range(5))
def test_zero_blocks_hold_a_whole_row_a_block_of_128_and_values_other_than_zero(seed: int) -> None:
    is_zero = _amplitudes("zero_blocks", seed) == 0
    assert is_zero.all(axis=1).any()
    rows = is_zero[~is_zero.all(axis=1)].reshape(-1, SHAPE[1] // 128, 128)
    assert rows.all(axis=2).any()
    assert not is_zero.all()


def test_a_single_row_is_not_zero_in_every_draw() -> None:
    rng = np.random.default_rng(1)
    drawn = [draw_amplitudes(rng, (1, 640), "zero_blocks", MAGNITUDES) for _ in range(10)]
    assert sum(bool(amplitudes.any()) for amplitudes in drawn) > 5


def test_zeros_come_in_whole_blocks_of_sixteen() -> None:
    blocks = (_amplitudes("zero_blocks") == 0).reshape(24, 40, 16)
    assert (blocks.all(axis=2) == blocks.any(axis=2)).all()


def test_mixed_blocks_of_sixteen_share_a_power_of_two() -> None:
    blocks = _amplitudes("mixed").reshape(24, 40, 16)
    assert (blocks == blocks[:, :, :1]).all()
    exponents = np.log2(blocks)
    assert (exponents == np.rint(exponents)).all()
    assert (exponents.min(), exponents.max()) == (-12, 12)


@pytest.mark.parametrize("regime", REGIMES)
def test_columns_need_not_be_a_multiple_of_sixteen(regime: str) -> None:
    amplitudes = draw_amplitudes(np.random.default_rng(1), (2, 37), regime, MAGNITUDES)
    values = draw_values(np.random.default_rng(1), (2, 37), amplitudes)
    assert values.shape == (2, 37)


def test_values_are_normal_values_times_the_amplitudes() -> None:
    amplitudes = _amplitudes("mixed")
    values = draw_values(np.random.default_rng(5), SHAPE, amplitudes)
    unit = draw_values(np.random.default_rng(5), SHAPE, np.ones((1, 1), dtype=np.float32))
    np.testing.assert_array_equal(values, unit * amplitudes)
    assert abs(unit.std() - 1) < 0.05


def test_an_unknown_regime_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown regime 'odd'; allowed: normal, outliers"):
        _amplitudes("odd")


def test_values_of_a_seed_are_the_same_for_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 4 * SHAPE[1])
    one = np.ones((1, 1), dtype=np.float32)
    drawn: list[npt.NDArray[np.float32]] = []
    for threads in (1, 2):
        monkeypatch.setattr(wide_work, "threads", lambda threads=threads: threads)
        rng = np.random.default_rng(7)
        drawn += [draw_values(rng, SHAPE, one), draw_values(rng, SHAPE, one)]
    first, second, first_again, second_again = drawn
    assert np.array_equal(first, first_again)
    assert np.array_equal(second, second_again)
    assert np.unique(np.concatenate([first, second])).size > 1.9 * first.size
