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


def _unit(shape: tuple[int, int], seed: int = 3) -> npt.NDArray[np.float32]:
    return draw_values(np.random.default_rng(seed), shape, np.ones((1, 1), dtype=np.float32))


def test_values_have_the_moments_and_the_tails_of_a_normal_distribution() -> None:
    values = _unit((512, 8192)).astype(np.float64)  # four million: a deviation is 0.0005

    assert abs(values.mean()) < 0.002
    assert abs(np.mean(values**2) - 1) < 0.004
    assert abs(np.mean(values**3)) < 0.01
    assert abs(np.mean(values**4) - 3) < 0.03
    for limit, share in ((0.01, 0.99202), (1.0, 0.31731), (3.0, 0.0026998), (4.5, 6.795e-6)):
        assert np.mean(np.abs(values) > limit) == pytest.approx(
            share, rel=0.5 if limit > 4 else 0.03
        )
    assert np.abs(values).max() > 4.9  # beyond the outermost radius of 16 bits


def test_the_two_values_of_a_radius_are_independent() -> None:
    values = _unit((64, 32768)).astype(np.float64)  # a row is what is drawn at once
    first, second = values[:, :16384], values[:, 16384:]

    for power in (1, 2):
        assert abs(np.corrcoef((first**power).ravel(), (second**power).ravel())[0, 1]) < 0.004
    assert abs(np.corrcoef(values[:, 1:].ravel(), values[:, :-1].ravel())[0, 1]) < 0.004


@pytest.mark.parametrize("size", [1, 2, 3, 5, 32767, 32769])
def test_any_number_of_values_is_drawn_and_none_is_left_out(size: int) -> None:
    values = _unit((1, size))

    assert np.isfinite(values).all()
    assert np.unique(values).size >= size - size // 1000
