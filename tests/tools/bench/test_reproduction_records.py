"""When a new measurement reproduces a receipt's: the edges of the rule, on records made by hand."""

from math import exp, nextafter

import pytest

from kopt.kernels.bench_result import BaselinePath, BenchResult, NoiseFloor
from kopt.kernels.receipt import WorkloadEvidence
from kopt.kernels.status import Status, Verdict
from kopt.kernels.verify_result import CubinComparison, WorkloadReproduction
from kopt.tools.bench.reproduction_rule import (
    accepted_range,
    as_receipt_says,
    binary_reasons,
    compare_measurement,
    device_notes,
    workload_notes,
)
from support.bench_results import H100, bench_result, comparison
from support.receipts import sealed_receipt

REFERENCE = BaselinePath(name="reference")
LIBRARY = BaselinePath(name="lib", pdl=True, library="lib 2.0")


def _entry() -> WorkloadEvidence:
    """Return 1.25 times as fast as the reference, in every measurement."""
    (entry,) = sealed_receipt().workloads
    return entry.model_copy(update={"speedup": 1.25, "range": (1.25, 1.25)})


def _result(
    interval: tuple[float, float], floor: NoiseFloor | None = None, *others: Verdict
) -> BenchResult:
    """Return faster than the reference by `interval`, and the verdicts against a library."""
    main = comparison(baseline=REFERENCE, interval=interval, speedup=1.25, noise_floor=floor)
    libraries = tuple(comparison(verdict, baseline=LIBRARY) for verdict in others)
    return bench_result(comparisons=(*libraries, main))


def _compared(result: BenchResult, *, on_another_gpu: bool = False) -> WorkloadReproduction:
    entry = _entry()
    before = as_receipt_says(entry, Status.PASSED)
    assert (before.holds, before.speedup, before.receipt_speedup) == (False, None, 1.25)
    assert before.accepted_range == (LOW, HIGH)
    return compare_measurement(before, entry, result, on_another_gpu=on_another_gpu)


LOW, HIGH = accepted_range(_entry(), 0.0, on_another_gpu=False)


@pytest.mark.parametrize(
    ("interval", "holds"),
    [
        ((1.2, LOW), True),
        ((1.2, nextafter(LOW, 0)), False),
        ((HIGH, 1.3), True),
        ((nextafter(HIGH, 2), 1.3), False),
        ((1.2, 1.3), True),
        ((1.249, 1.251), True),
    ],
)
def test_an_interval_that_touches_the_accepted_range_reproduces(
    interval: tuple[float, float], holds: bool
) -> None:
    found = _compared(_result(interval))
    assert (found.holds, found.interval, found.accepted_range) == (holds, interval, (LOW, HIGH))
    assert (found.baseline, found.library, found.speedup) == ("reference", None, 1.25)
    why = "faster than reference, but by another ratio than in the receipt"
    assert found.reason == (None if holds else why)


def test_the_noise_of_the_new_measurement_widens_the_accepted_range() -> None:
    floor = NoiseFloor(median=0.0, half_width=0.01, pairs=100, cached=False, measured_at="now")
    found = _compared(_result((1.2, 1.2401), floor))
    assert found.holds
    assert found.accepted_range[0] == pytest.approx(1.25 * exp(-0.01))


@pytest.mark.parametrize(
    ("high", "holds", "is_told"), [(1.249, True, False), (1.22, True, True), (1.21, False, False)]
)
def test_what_holds_by_the_allowance_between_gpus_alone_is_told(
    high: float, holds: bool, is_told: bool
) -> None:
    found = _compared(_result((1.2, high)), on_another_gpu=True)
    assert (found.holds, found.only_on_another_gpu) == (holds, is_told)
    notes = workload_notes([found])
    assert notes == (
        (
            "b8xh64: 1.250x is in the accepted range only because another GPU may differ by a"
            " quarter of the gain, at most 3%",
        )
        if is_told
        else ()
    )


def test_a_measurement_that_was_not_made_or_failed_holds_nothing() -> None:
    failed = _compared(_result((1.2, 1.3)).model_copy(update={"status": Status.TIMEOUT}))
    assert (failed.status, failed.holds) == (Status.TIMEOUT, False)
    assert failed.reason == f"{Status.TIMEOUT} when it was timed"
    other = bench_result(comparisons=(comparison(baseline=LIBRARY),))
    assert (_compared(other).holds, _compared(other).verdict) == (False, None)


def test_slower_than_any_path_that_runs_here_does_not_reproduce() -> None:
    assert _compared(_result((1.2, 1.3), None, Verdict.FASTER, Verdict.INCONCLUSIVE)).holds
    found = _compared(_result((1.2, 1.3), None, Verdict.FASTER, Verdict.SLOWER))
    assert not found.holds
    assert found.reason == "faster than reference, but slower than lib (PDL on)"


def test_another_main_baseline_than_the_receipts_is_named_with_the_reason() -> None:
    library = BaselinePath(name="lib", pdl=False, library="lib 1.0")
    entry = _entry().model_copy(update={"baseline": library})
    before = as_receipt_says(entry, Status.PASSED)
    assert (before.receipt_baseline, before.receipt_library) == ("lib (PDL off)", "lib 1.0")
    timed = comparison(Verdict.NOT_LIKE_FOR_LIKE, baseline=LIBRARY)
    result = bench_result(comparisons=(comparison(baseline=REFERENCE), timed))
    found = compare_measurement(before, entry, result, on_another_gpu=False)
    assert found.reason == (
        "not like for like against lib (PDL on) (the receipt's baseline is lib (PDL off))"
    )
    assert workload_notes([found]) == ("b8xh64: lib 2.0; receipt: lib 1.0",)
    assert workload_notes([before]) == ()


@pytest.mark.parametrize(
    ("is_same", "toolchain", "reasons"),
    [
        (True, "nvcc 1", []),
        (True, "nvcc 2", []),
        (False, "nvcc 2", []),
        (False, "nvcc 1", ["nvcc 1 makes another binary of the source than then (a, b)"]),
    ],
)
def test_only_another_binary_of_the_same_compiler_speaks_against_a_receipt(
    is_same: bool, toolchain: str, reasons: list[str]
) -> None:
    found = CubinComparison(
        same=is_same, differing=("a", "b"), receipt_toolchain="nvcc 1", toolchain=toolchain
    )
    assert binary_reasons(found) == reasons
    assert binary_reasons(None) == []


def test_another_driver_and_another_gpu_of_the_model_are_noted() -> None:
    assert device_notes(H100, H100) == ()
    driver = H100.model_copy(update={"driver_version": "590.1"})
    assert device_notes(driver, H100) == (f"driver 590.1; receipt: {H100.driver_version}",)
    second = H100.model_copy(update={"uuid": "GPU-2"})
    assert device_notes(second, H100) == (f"another {H100.name} than the receipt's",)
    assert device_notes(second.model_copy(update={"name": "NVIDIA H200"}), H100) == ()
