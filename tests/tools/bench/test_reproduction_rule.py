"""Which speedups a receipt accepts as its own."""

from math import exp

import pytest

from kopt.kernels.receipt import WorkloadEvidence
from kopt.tools.bench.reproduction_rule import accepted_range
from support.receipts import FLOOR, sealed_receipt


def _evidence(speedup: float) -> WorkloadEvidence:
    (entry,) = sealed_receipt().workloads
    return entry.model_copy(update={"speedup": speedup, "range": (speedup, speedup)})


def test_the_accepted_range_is_the_receipts_widened_by_the_wider_noise() -> None:
    (entry,) = sealed_receipt().workloads
    low, high = accepted_range(entry, 0.0, on_another_gpu=False)
    assert low == pytest.approx(entry.range[0] * exp(-0.003))
    assert high == pytest.approx(entry.range[1] * exp(0.003))
    assert accepted_range(entry, 0.01, on_another_gpu=False)[1] == pytest.approx(
        entry.range[1] * exp(0.01)
    )


@pytest.mark.parametrize(
    ("speedup", "allowed"),
    [(1.008, 0.003), (exp(0.02), 0.005), (exp(0.12), 0.03), (1.5, 0.03), (3.5, 0.03)],
)
def test_on_another_gpu_a_quarter_of_the_gain_is_accepted_and_no_more_than_three_per_cent(
    speedup: float, allowed: float
) -> None:
    low, high = accepted_range(_evidence(speedup), 0.0, on_another_gpu=True)
    assert (low, high) == pytest.approx((speedup * exp(-allowed), speedup * exp(allowed)))


def test_no_more_than_two_per_cent_is_believed_of_a_receipts_own_range_and_noise() -> None:
    wide = _evidence(5.0).model_copy(update={"range": (1.01, 9.0)})
    low, high = accepted_range(wide, 0.0, on_another_gpu=False)
    assert (low, high) == pytest.approx((5.0 * exp(-0.023), 5.0 * exp(0.023)))
    noisy = wide.measurements[0].model_copy(
        update={"noise_floor": FLOOR.model_copy(update={"median": 1.0})}
    )
    loud = wide.model_copy(update={"measurements": (noisy,)})
    low, high = accepted_range(loud, 0.0, on_another_gpu=False)
    assert (low, high) == pytest.approx((5.0 * exp(-0.04), 5.0 * exp(0.04)))
