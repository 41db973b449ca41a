"""What the comparison of estimates with times says of a kernel's candidates."""

from bench_estimate import Pair, shipped, tried_row


def test_pairs_that_a_measurement_tells_apart_are_counted_by_their_order() -> None:
    pairs = [Pair(1.0, 2.0), Pair(1.01, 1.0), Pair(2.0, 4.0), Pair(4.0, 2.0)]
    # 1.0 and 1.01 are too near to be ordered; of the other five pairs 2.0 and 4.0 are estimated
    # the other way round, and 1.0 and 4.0 tied.
    *_, order = tried_row("silu_and_mul_b8xh14336", pairs)
    assert order == "3 + 1 of 5"


def test_factors_are_geometric_means_and_their_size() -> None:
    name, count, measured, factor, off, _ = tried_row("k", [Pair(1.0, 2.0), Pair(2.0, 1.0)])
    assert (name, count, measured) == ("k", "2", "1.00 to 2.00")
    assert (factor, off) == ("1.00", "2.00")


def test_times_of_another_gpu_are_not_held_against_the_estimate_of_an_h100() -> None:
    found = dict(shipped(["silu_and_mul"]))
    assert "silu_and_mul_b8xh14336" in found
    assert {receipt.device.name for receipt in found.values()} == {"NVIDIA H100 80GB HBM3"}
