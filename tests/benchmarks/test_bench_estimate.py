"""What the comparison of estimates with times says of kept programs."""

import pytest
from bench_estimate import shipped
from estimate_scores import Point, loss, ratio_interval, score, share_inside


def _points(*times: tuple[float, float]) -> list[Point]:
    return [Point("k", measured, estimated) for measured, estimated in times]


def test_pairs_that_a_measurement_tells_apart_are_counted_by_their_order() -> None:
    found = score(_points((1.0, 2.0), (1.01, 1.0), (2.0, 4.0), (4.0, 2.0)), 0.01)
    # 1.0 and 1.01 are too near to be ordered; of the other five pairs 2.0 and 4.0 are estimated
    # the other way round, and 1.0 and 4.0 tied.
    assert (found.right, found.wrong, found.tied) == (3, 1, 1)
    assert found.row()[:4] == ["5", "60%", "20%", "20%"]


def test_programs_of_two_kernels_are_no_pair() -> None:
    found = score([Point("k", 1.0, 1.0), Point("other", 2.0, 1.0)], 0.01)
    assert (found.pairs, found.taus) == (0, {})


def test_error_is_the_mean_factor_whatever_its_direction() -> None:
    assert score(_points((1.0, 2.0), (2.0, 1.0)), 0.01).off_by == pytest.approx(1.0)


def test_fit_minds_the_spread_within_a_kernel_more_than_its_level() -> None:
    level = loss(_points((1.0, 1.2), (2.0, 2.4)))
    spread = loss(_points((1.0, 1.2), (2.0, 2.0 / 1.2)))
    assert spread > 3 * level


def test_interval_holds_for_its_share_of_the_programs_and_each_kernel_counts_alike() -> None:
    many = [Point("many", 1.0 + place / 100, 1.0) for place in range(100)]
    few = [Point("few", 3.0, 1.0), Point("few", 3.0, 1.0)]
    least, most = ratio_interval([*many, *few], 0.8)
    assert least == pytest.approx(1.19)
    assert most == pytest.approx(3.0)
    assert share_inside([*many, *few], (1.195, 3.5)) == [pytest.approx(0.8), 1.0]


def test_times_of_another_gpu_are_not_held_against_the_estimate_of_an_h100() -> None:
    found = dict(shipped(["silu_and_mul"]))
    assert "silu_and_mul_b8xh14336" in found
    assert {receipt.device.name for receipt in found.values()} == {"NVIDIA H100 80GB HBM3"}
