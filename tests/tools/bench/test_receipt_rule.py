"""Sealed receipts that claim what their samples do not."""

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.kernels.receipt import Receipt, RepeatedMeasurement
from kopt.kernels.status import Verdict
from kopt.tools.bench.bound_files import problem_files
from kopt.tools.bench.receipt_file import read_receipt, receipt_text
from kopt.tools.bench.receipt_rule import contradiction
from kopt.tools.bench.reproduction import problem_of
from kopt.tools.check.cases import Seeds, plan_cases, without_known
from support.receipts import FLOOR, measurement, sealed_receipt
from support.tiny_problem import tiny_candidate, write_tiny_problem


def _claiming(measurements: tuple[RepeatedMeasurement, ...], **fields: Any) -> Receipt:
    """Return a receipt whose numbers follow from `measurements`."""
    receipt = sealed_receipt()
    (entry,) = receipt.workloads
    speedups = [one.speedup for one in measurements]
    middle = median(speedups)
    changed = entry.model_copy(
        update={
            "measurements": measurements,
            "speedup": middle,
            "range": (min(speedups), max(speedups)),
        }
    )
    update = {"workloads": (changed,), "geometric_mean_speedup": middle, **fields}
    return receipt.model_copy(update=update)


def _six(*speedups: float) -> tuple[RepeatedMeasurement, ...]:
    return tuple(measurement(speedup, number) for number, speedup in enumerate(speedups))


@pytest.mark.parametrize("name", [one.name for one in load_problems().values()])
def test_what_a_full_check_runs_is_enough_for_a_receipt(name: str) -> None:
    problem, receipt = load_problems()[name], sealed_receipt()
    (entry,) = receipt.check.workloads
    planned = plan_cases(problem, problem.workloads, "full", Seeds((1, 2, 3), (11, 12)))
    cases = without_known(problem, planned, problem.workloads[0])
    for workload in problem.workloads:
        own = [case for case in cases if case.workload == workload]
        counts = {
            "visible_seeds": len({case.seed for case in own if not case.hidden}),
            "hidden_seeds": len({case.seed for case in own if case.hidden}),
            "executions": sum(len(case.runs) for case in own),
        }
        check = receipt.check.model_copy(update={"workloads": (entry.model_copy(update=counts),)})
        assert contradiction(receipt.model_copy(update={"check": check})) is None, workload.name


def test_a_receipt_of_agreeing_measurements_stands() -> None:
    assert contradiction(_claiming(_six(*(1.25,) * 6))) is None


def test_one_slow_measurement_among_fast_ones_is_no_range() -> None:
    assert contradiction(_claiming(_six(1.01, *(5.0,) * 5))) == (
        "the measurements of b8xh64 do not agree"
    )


@pytest.mark.parametrize(
    "made",
    [_six(1.25, 1.25), _six(*(1.25,) * 7), (*_six(*(1.25,) * 5), measurement(1.25, 0))],
    ids=["two", "seven", "one twice"],
)
def test_six_sessions_are_needed_each_once(made: tuple[RepeatedMeasurement, ...]) -> None:
    assert contradiction(_claiming(made)) == (
        "workload b8xh64 was not measured 3 times in 2 processes each"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": Verdict.SLOWER},
        {"noise_floor": FLOOR.model_copy(update={"median": 3.0})},
        {"noise_floor": FLOOR.model_copy(update={"median": 1000.0})},
    ],
    ids=["slower", "noise", "endless noise"],
)
def test_every_measurement_must_be_faster_beyond_its_own_noise(change: dict[str, Any]) -> None:
    made = tuple(one.model_copy(update=change) for one in _six(*(1.25,) * 6))
    assert contradiction(_claiming(made)) == (
        "a measurement of b8xh64 is not faster than its baseline"
    )


@pytest.mark.parametrize("interval", [(1.24, 3.0), (0.0, 1.3), (1.3, 1.2), (1.1, 1.26)])
def test_an_interval_must_be_that_of_its_samples(interval: tuple[float, float]) -> None:
    made = tuple(one.model_copy(update={"interval": interval}) for one in _six(*(1.25,) * 6))
    assert contradiction(_claiming(made)) == (
        "an interval of b8xh64 does not follow from its samples"
    )


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize(
    ("share", "is_accepted"), [(0.24, True), (-0.24, True), (0.26, False), (-0.26, False)]
)
def test_an_end_of_an_interval_may_be_a_quarter_of_its_width_away(
    end: int, share: float, is_accepted: bool
) -> None:
    made: list[RepeatedMeasurement] = []
    for one in _six(*(1.25,) * 6):
        ends = list(one.interval)
        ends[end] *= (ends[1] / ends[0]) ** share
        made.append(one.model_copy(update={"interval": tuple(ends)}))
    found = contradiction(_claiming(tuple(made)))
    why = "an interval of b8xh64 does not follow from its samples"
    assert found == (None if is_accepted else why)


@pytest.mark.parametrize(("threshold", "is_accepted"), [(0.2226, True), (0.2230, False)])
def test_the_low_end_of_an_interval_must_be_beyond_the_noise(
    threshold: float, is_accepted: bool
) -> None:
    """The interval is from 0.22264 to 0.22364."""
    floor = FLOOR.model_copy(update={"median": threshold - 0.002})
    assert floor.threshold == pytest.approx(threshold)
    made = tuple(one.model_copy(update={"noise_floor": floor}) for one in _six(*(1.25,) * 6))
    why = "a measurement of b8xh64 is not faster than its baseline"
    assert contradiction(_claiming(made)) == (None if is_accepted else why)


@pytest.mark.parametrize(("samples", "pairs"), [(99, 99), (98, 100), (0, 0)])
def test_the_number_of_samples_is_even_and_that_of_the_pairs(samples: int, pairs: int) -> None:
    made = tuple(
        one.model_copy(update={"log_ratios": one.log_ratios[:samples], "pairs": pairs})
        for one in _six(*(1.25,) * 6)
    )
    assert contradiction(_claiming(made)) == (
        "the number of pairs of b8xh64 does not follow from its samples"
    )


@pytest.mark.parametrize("ratio", [-800.0, 1000.0])
def test_samples_beyond_all_speedups_are_refused_in_words(ratio: float) -> None:
    made = tuple(
        one.model_copy(update={"log_ratios": (ratio,) * 100, "speedup": max(0.0, ratio)})
        for one in _six(*(1.25,) * 6)
    )
    receipt = _claiming(made, geometric_mean_speedup=1.0)
    assert contradiction(receipt) == "a speedup of b8xh64 does not follow from its samples"


def test_the_geometric_mean_must_be_that_of_the_workloads() -> None:
    receipt = sealed_receipt().model_copy(update={"geometric_mean_speedup": 99.0})
    assert contradiction(receipt) == "its geometric mean does not follow from its workloads"


def test_a_number_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    text = receipt_text(sealed_receipt()).replace('"dropped_pairs": 0', '"dropped_pairs": 1e999')
    path = tmp_path / "x.receipt.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ToolError, match="1e999 is too large"):
        read_receipt(path)


def test_a_receipt_must_cover_all_that_its_source_claims(
    tmp_path: Path, settings: Settings
) -> None:
    files = problem_files(load_problem(write_tiny_problem(tmp_path)))
    receipt = sealed_receipt("scale_rows", tiny_candidate(), problem_files=files)
    with pytest.raises(ToolError, match="other workloads than its source claims: b32xh256, b8xh64"):
        problem_of(receipt, replace(settings, problems=tmp_path))
