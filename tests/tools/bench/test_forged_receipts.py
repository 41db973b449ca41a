"""Receipts as a forger would write them: edited, and given a digest that fits."""

from collections.abc import Callable
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.bench_result import Comparison, LikeForLike
from kopt.kernels.check_result import RaceCheck
from kopt.kernels.receipt import Receipt, RepeatedMeasurement, WorkloadEvidence
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.intervals import median_interval
from kopt.tools.bench.receipt_file import read_receipt, with_digest
from support.bench_results import H100, comparison, latency
from support.receipts import evidence, sealed_receipt, write_receipt

Forgery = Callable[[Receipt], Receipt]


def _refusal(folder: Path, forged: Receipt) -> str:
    """Return why a receipt with a fitting digest is refused."""
    with pytest.raises(ToolError) as caught:
        read_receipt(write_receipt(folder / "b8xh64.sm_90a.receipt.json", with_digest(forged)))
    return str(caught.value)


def _with_evidence(receipt: Receipt, entry: WorkloadEvidence) -> Receipt:
    update = {"workloads": (entry,), "geometric_mean_speedup": entry.speedup}
    return receipt.model_copy(update=update)


def _measured(change: Callable[[RepeatedMeasurement], dict[str, Any]]) -> Receipt:
    """Return a receipt with every measurement changed; speedup and range follow from them."""
    receipt = sealed_receipt()
    (entry,) = receipt.workloads
    made = tuple(one.model_copy(update=change(one)) for one in entry.measurements)
    speedups = [one.speedup for one in made]
    update = {
        "measurements": made,
        "speedup": sorted(speedups)[2] / 2 + sorted(speedups)[3] / 2,
        "range": (min(speedups), max(speedups)),
    }
    return _with_evidence(receipt, entry.model_copy(update=update))


def _sampled(one: RepeatedMeasurement, ratios: tuple[float, ...]) -> dict[str, Any]:
    found = median_interval(ratios, one.seed)
    return {
        "log_ratios": ratios,
        "pairs": len(ratios),
        "speedup": exp(found.median),
        "interval": (exp(found.low), exp(found.high)),
    }


def test_doubled_speedups_contradict_the_times_beside_them(tmp_path: Path) -> None:
    def doubled(one: RepeatedMeasurement) -> dict[str, Any]:
        return _sampled(one, tuple(ratio + log(2) for ratio in one.log_ratios))

    forged = _measured(doubled)
    assert forged.workloads[0].speedup == pytest.approx(2.5, rel=1e-3)
    assert "a speedup of b8xh64 contradicts the times beside it" in _refusal(tmp_path, forged)


def test_times_that_vary_without_end_explain_no_doubled_speedup(tmp_path: Path) -> None:
    def doubled(one: RepeatedMeasurement) -> dict[str, Any]:
        wide = one.latency.model_copy(update={"p10_us": 0.1, "min_us": 0.1, "p90_us": 400.0})
        changed = _sampled(one, tuple(ratio + log(2) for ratio in one.log_ratios))
        return {**changed, "latency": wide}

    assert "contradicts the times beside it" in _refusal(tmp_path, _measured(doubled))


def test_a_speedup_may_be_a_little_away_from_the_ratio_of_its_times(tmp_path: Path) -> None:
    """Of the 108 measurements of the shipped winners the worst is 1.1 % away."""
    changed = _measured(lambda one: {"baseline_latency": latency(4.0 * 1.25 * 1.015)})
    read_receipt(write_receipt(tmp_path / "b8xh64.sm_90a.receipt.json", with_digest(changed)))


def test_two_pairs_are_no_measurement(tmp_path: Path) -> None:
    forged = _measured(lambda one: _sampled(one, one.log_ratios[:2]))
    said = "a measurement of b8xh64 has 2 pairs, not 100 to 1600"
    assert said in _refusal(tmp_path, forged)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"latency": latency(4.0).model_copy(update={"replays": 2})}, "no whole times behind it"),
        ({"latency": latency(4.0).model_copy(update={"min_us": 9.0})}, "no whole times behind it"),
        ({"baseline_latency": latency(-5.0)}, "no whole times behind it"),
        ({"latency": latency(float(0))}, "no whole times behind it"),
    ],
    ids=["replays", "order", "negative", "zero"],
)
def test_times_are_measured_and_in_order(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert said in _refusal(tmp_path, _measured(lambda one: change))


@pytest.mark.parametrize("change", [{"half_width": -0.5, "median": 0.4}, {"pairs": 2}])
def test_a_noise_floor_is_measured(tmp_path: Path, change: dict[str, Any]) -> None:
    forged = _measured(
        lambda one: {"noise_floor": one.noise_floor.model_copy(update=change)},
    )
    assert "a measurement of b8xh64 has no whole noise floor" in _refusal(tmp_path, forged)


@pytest.mark.parametrize("counts", [(0, 0, 0), (16, 17, 0), (16, 20, -4)])
def test_timed_outputs_were_compared(tmp_path: Path, counts: tuple[int, int, int]) -> None:
    calls, identical, within_gates = counts
    named = {"calls": calls, "identical": identical, "within_gates": within_gates}
    forged = _measured(
        lambda one: {"timed_outputs": one.timed_outputs.model_copy(update=named)},
    )
    assert "did not compare its timed outputs" in _refusal(tmp_path, forged)


@pytest.mark.parametrize("field", ["seed", "log_ratios"])
def test_one_measurement_copied_is_not_six(tmp_path: Path, field: str) -> None:
    receipt = sealed_receipt()
    first = receipt.workloads[0].measurements[0]

    def copied(one: RepeatedMeasurement) -> dict[str, Any]:
        if field == "seed":
            return {"seed": first.seed}
        kept = ("log_ratios", "speedup", "interval")
        # Other seeds move the ends of an interval less than is allowed.
        return {name: getattr(first, name) for name in kept}

    said = "two measurements of b8xh64 are the same one"
    assert said in _refusal(tmp_path, _measured(copied))


@pytest.mark.parametrize(
    "other",
    [
        comparison(Verdict.SLOWER, speedup=0.8, interval=(0.79, 0.81)),
        comparison(Verdict.FASTER, speedup=0.8, interval=(0.79, 0.81)),
    ],
    ids=["said", "hidden"],
)
def test_a_faster_baseline_beside_the_main_one_refutes_it(
    tmp_path: Path, other: Comparison
) -> None:
    forged = _measured(lambda one: {"others": (other,)})
    assert "is slower than flashinfer_cute (PDL on)" in _refusal(tmp_path, forged)


def test_the_baseline_does_the_same_work(tmp_path: Path) -> None:
    receipt = sealed_receipt()
    (entry,) = receipt.workloads
    unlike = entry.model_copy(update={"like_for_like": LikeForLike(holds=False)})
    said = "the baseline of b8xh64 is not like for like"
    assert said in _refusal(tmp_path, _with_evidence(receipt, unlike))


def _check(**fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        return receipt.model_copy(update={"check": receipt.check.model_copy(update=fields)})

    return forge


def _workload_check(**fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        changed = tuple(one.model_copy(update=fields) for one in receipt.check.workloads)
        return _check(workloads=changed)(receipt)

    return forge


def _races(outcome: str, **fields: Any) -> Forgery:
    said = RaceCheck.model_validate({"outcome": outcome, **fields})
    return _check(race_check=said)


def _sanitizer(**fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        changed = tuple(one.model_copy(update=fields) for one in receipt.sanitizer)
        return receipt.model_copy(update={"sanitizer": changed})

    return forge


def _runs(of: str, **fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        runs = tuple(
            run.model_copy(update=fields if run.tool == of else {})
            for run in receipt.sanitizer[0].runs
        )
        return _sanitizer(runs=runs)(receipt)

    return forge


def _cubin(**fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        changed = tuple(one.model_copy(update=fields) for one in receipt.cubins)
        return receipt.model_copy(update={"cubins": changed})

    return forge


def _device(**fields: Any) -> Forgery:
    def forge(receipt: Receipt) -> Receipt:
        return receipt.model_copy(update={"device": receipt.device.model_copy(update=fields)})

    return forge


def _receipt(**fields: Any) -> Forgery:
    return lambda receipt: receipt.model_copy(update=fields)


def _twice(receipt: Receipt) -> Receipt:
    return receipt.model_copy(update={"workloads": receipt.workloads * 2})


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (_check(level="quick"), "check is of level quick"),
        (_check(workloads=()), "it has no full check of workload b8xh64"),
        (_check(visible_seeds=()), "its check names no seed"),
        (_workload_check(status=Status.INCORRECT), "check of b8xh64 did not pass"),
        (_workload_check(hidden_seeds=0), "met no hidden inputs"),
        (_workload_check(executions=0), "met no hidden inputs"),
        (_workload_check(visible_seeds=-1), "check.workloads.0.visible_seeds"),
        (_races("findings", workloads=("b8xh64",)), "its race check has findings"),
        (_races("passed"), "its race check has findings, or no words"),
        (_races("unavailable", reason=" "), "its race check has findings, or no words"),
        (_receipt(sanitizer=()), "does not say what compute-sanitizer found at b8xh64"),
        (_sanitizer(runs=()), "memcheck of compute-sanitizer is missing at b8xh64"),
        (_sanitizer(kernel="other_b8xh64"), "does not say what compute-sanitizer found"),
        (_sanitizer(candidate="c" * 64), "compute-sanitizer ran another candidate"),
        (_sanitizer(gpu=None), "compute-sanitizer ran on another GPU"),
        (_sanitizer(status=Status.DATA_RACE), "compute-sanitizer did not pass at b8xh64"),
        (_runs("racecheck", outcome="findings"), "racecheck of compute-sanitizer has findings"),
        (_runs("initcheck", status=Status.DATA_RACE), "initcheck of compute-sanitizer has"),
        (_runs("memcheck", outcome="unavailable"), "did not judge and does not say why"),
        (_runs("memcheck", tool="synccheck"), "memcheck of compute-sanitizer is missing"),
        (_cubin(sha256="none"), "the cubin of b8xh64 has no SHA-256"),
        (_cubin(arch="sm_100a"), "the cubin of b8xh64 is of sm_100a"),
        (_cubin(workloads=("other",)), "no cubin serves workload b8xh64"),
        (_device(name=" "), "does not describe the GPU"),
        (_device(uuid=""), "does not describe the GPU"),
        (_device(sm_count=0), "does not describe the GPU"),
        (_device(compute_capability=(8, 0)), "its GPU is of sm_80, and it is of sm_90a"),
        (_receipt(sandbox=None), "under which sandbox"),
        (_receipt(promoted_at="yesterday"), "does not say when it was made"),
        (_receipt(promoted_at="2026-01-01T00:00:00"), "does not say when it was made"),
        (_receipt(domain=("b8xh64", "b8xh64")), "names a workload twice"),
    ],
)
def test_what_stands_before_the_timings_is_whole(tmp_path: Path, forge: Forgery, said: str) -> None:
    assert said in _refusal(tmp_path, forge(sealed_receipt()))


@pytest.mark.parametrize(
    "said",
    [
        None,
        RaceCheck(outcome="passed", workloads=("b8xh64",)),
        RaceCheck(outcome="unavailable", reason="unsupported_on_sim: raw PTX"),
    ],
)
def test_a_race_check_passed_or_says_why_it_is_absent(
    tmp_path: Path, said: RaceCheck | None
) -> None:
    receipt = with_digest(_check(race_check=said)(sealed_receipt()))
    path = write_receipt(tmp_path / "b8xh64.sm_90a.receipt.json", receipt)
    assert read_receipt(path).check.race_check == said
    assert ("race_check" in path.read_text("utf-8")) == (said is not None)


def test_a_workload_twice_is_refused_where_a_receipt_covers_several(tmp_path: Path) -> None:
    forged = _twice(sealed_receipt()).model_copy(update={"promotion": ""})
    assert "it has a workload twice" in _refusal(tmp_path, forged)


@pytest.mark.parametrize("outcome", ["unavailable", "timeout"])
def test_a_sanitizer_that_says_why_it_is_absent_stops_nothing(tmp_path: Path, outcome: str) -> None:
    receipt = _runs("memcheck", outcome=outcome, reason="no whole compute-sanitizer found")(
        sealed_receipt()
    )
    read_receipt(write_receipt(tmp_path / "b8xh64.sm_90a.receipt.json", with_digest(receipt)))


def test_an_honest_receipt_of_another_gain_is_read(tmp_path: Path) -> None:
    receipt = sealed_receipt(workloads=(evidence("synthetic_b8xh64", "b8xh64", 2.5),), device=H100)
    read_receipt(write_receipt(tmp_path / "b8xh64.sm_90a.receipt.json", receipt))
