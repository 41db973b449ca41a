"""The verdict rule."""

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.bench_result import LikeForLike, NoiseFloor, PlainCopy, Rotation
from kopt.kernels.roofline import ByteModel, memory_floor_us
from kopt.kernels.status import Verdict
from kopt.tools.bench.intervals import Interval
from kopt.tools.bench.verdict import (
    decide,
    final_verdict,
    is_below_copy,
    is_impossible,
    next_target,
)
from support.bench_results import latency

LIKE = LikeForLike(holds=True)
UNLIKE = LikeForLike(holds=False, differences=("another layout",))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.0031, 0.01, Verdict.FASTER),
        (-0.01, -0.0031, Verdict.SLOWER),
        (-0.003, 0.003, Verdict.INCONCLUSIVE),
        (0.003, 0.01, None),
        (-0.01, -0.003, None),
        (-0.0031, 0.0, None),
        (-0.01, 0.01, None),
    ],
)
def test_only_a_whole_interval_beyond_the_threshold_is_a_difference(
    low: float, high: float, verdict: Verdict | None
) -> None:
    assert decide(Interval((low + high) / 2, low, high), 0.003) is verdict


@pytest.mark.parametrize(
    ("median", "half_width", "threshold"),
    [(0.0, 0.001, 0.003), (-0.002, 0.002, 0.004), (0.002, 0.002, 0.004)],
)
def test_the_threshold_is_the_floor_but_never_below_three_per_mille(
    median: float, half_width: float, threshold: float
) -> None:
    floor = NoiseFloor(
        median=median, half_width=half_width, pairs=100, cached=False, measured_at="now"
    )
    assert floor.threshold == pytest.approx(threshold)


def test_pairs_double_up_to_the_most() -> None:
    assert [next_target(pairs, 1600) for pairs in (100, 800, 1000, 1600)] == [200, 1600, 1600, None]


def test_a_time_below_the_data_sheets_bandwidth_is_impossible() -> None:
    # 3,350 bytes/ns: 3.35e6 bytes take 1 us at the peak
    assert is_impossible(0.97, _model(3_350_000), load_gpus()["H100"], _rotation(4.0))
    assert not is_impossible(0.99, _model(3_350_000), load_gpus()["H100"], _rotation(4.0))


def test_a_time_exactly_at_the_limit_is_possible() -> None:
    limit_us = memory_floor_us(_model(3_350_000), load_gpus()["H100"]) / 1.02
    assert not is_impossible(limit_us, _model(3_350_000), load_gpus()["H100"], _rotation(4.0))


def test_a_time_with_bytes_in_the_cache_is_not_impossible() -> None:
    assert not is_impossible(0.1, _model(3_350_000), load_gpus()["H100"], _rotation(3.9))


def test_impossible_overrules_and_unlike_hides_the_decision() -> None:
    assert final_verdict(Verdict.FASTER, True, UNLIKE) is Verdict.IMPOSSIBLE
    assert final_verdict(Verdict.FASTER, False, UNLIKE) is Verdict.NOT_LIKE_FOR_LIKE
    assert final_verdict(Verdict.FASTER, False, LIKE) is Verdict.FASTER
    assert final_verdict(None, False, LIKE) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("candidate_us", "is_below"),
    [(0.80, True), (0.92, True), (0.94, False), (0.985, False), (1.3, False)],
)
def test_only_a_time_clearly_below_a_plain_copy_is_told(
    candidate_us: float, is_below: bool
) -> None:
    copy = PlainCopy(
        read_bytes=16, written_bytes=16, latency=latency(1.0), block=256, vectors=1, pdl=True
    )
    assert is_below_copy(latency(candidate_us), copy) is is_below


def _model(total_bytes: int) -> ByteModel:
    return ByteModel(
        kernel="k",
        tensors=(),
        read_bytes=total_bytes,
        written_bytes=0,
        total_bytes=total_bytes,
        flop=0,
        flop_per_byte=0.0,
    )


def _rotation(over_l2: float) -> Rotation:
    return Rotation(sets=8, set_bytes=1, over_l2=over_l2)
