"""When a claim holds: the rule for one measured speedup, for a workload, and over all of them."""

from typing import Any

import pytest

from kopt.kernels.bench_result import BaselinePath, BenchResult, LikeForLike, RejectedBaseline
from kopt.kernels.record import Diagnostic
from kopt.kernels.review_result import Claim, ReviewAnswer, ReviewedWorkload, SpeedLimit
from kopt.kernels.status import Status, Verdict
from kopt.tools.review.judgement import (
    judge_claim,
    judge_status,
    judge_workload,
    mean_speedup,
    reach,
)
from support.bench_results import bench_result, comparison, failed_bench

UNLIKE = LikeForLike(holds=False, differences=("it allocates memory inside the call (1 times)",))
REFERENCE = BaselinePath(name="reference")


@pytest.mark.parametrize(
    ("claimed", "interval", "answer"),
    [
        (1.7, (1.695, 1.705), "holds"),
        (1.5, (1.695, 1.705), "holds"),  # more than is claimed
        (1.71, (1.695, 1.706), "holds"),  # short by less than the noise threshold
        (1.73, (1.695, 1.705), "cannot_be_told"),  # as far as two GPUs of one model differ
        (1.8, (1.695, 1.705), "does_not_hold"),
        (1.7, (1.2, 2.0), "cannot_be_told"),  # the interval says little
        (1.018, (1.012, 1.014), "cannot_be_told"),
        (1.02, (1.001, 1.004), "does_not_hold"),  # a small gain leaves little room
    ],
)
def test_a_speedup_reaches_a_claim_by_its_interval_and_the_noise(
    claimed: float, interval: tuple[float, float], answer: ReviewAnswer
) -> None:
    assert reach(claimed, interval, 0.003) == answer


def _judged(claim: Claim, result: BenchResult | None, limit: SpeedLimit | None = None) -> str:
    return judge_workload(claim, result, limit).answer


def _compared(*comparisons: Any, **fields: Any) -> BenchResult:
    return bench_result(comparisons[0].verdict, comparisons=comparisons, **fields)


def test_what_was_not_timed_cannot_be_told() -> None:
    judged = judge_workload(Claim(speedup=1.2), None, None)
    assert (judged.answer, judged.reason) == ("cannot_be_told", "no GPU timed it")


def test_a_claim_beyond_what_physics_leaves_is_refuted_without_a_measurement() -> None:
    limit = SpeedLimit(
        gpu="H100",
        baseline="flashinfer (PDL on)",
        baseline_us=4.0,
        least_us=2.0,
        bound="memory",
        speedup=2.0,
        evidence="b8.receipt.json",
    )
    judged = judge_workload(Claim(speedup=2.1), None, limit)
    assert judged.answer == "does_not_hold"
    assert "the memory needs for the bytes 2.000 us, so that 2.00x is the most" in judged.reason
    assert _judged(Claim(speedup=1.9), None, limit) == "cannot_be_told"


def test_a_measured_speedup_is_compared_with_the_claim() -> None:
    assert _judged(Claim(speedup=1.2), bench_result()) == "holds"
    assert _judged(Claim(speedup=1.5), bench_result()) == "does_not_hold"


@pytest.mark.parametrize(
    ("status", "simulated", "answer"),
    [
        (Status.INCORRECT, False, "does_not_hold"),
        (Status.REWARD_HACK, False, "does_not_hold"),
        (Status.DATA_RACE, True, "does_not_hold"),
        (Status.TIMEOUT, False, "does_not_hold"),
        (Status.TIMEOUT, True, "cannot_be_told"),
        (Status.UNSUPPORTED_ON_SIM, True, "cannot_be_told"),
        (Status.COMPILE_ERROR, True, "cannot_be_told"),
        (Status.LAUNCH_ERROR, False, "cannot_be_told"),
    ],
)
def test_what_is_wrong_is_refuted_and_what_never_ran_is_not(
    status: Status, simulated: bool, answer: ReviewAnswer
) -> None:
    judged = judge_status(status, "said", simulated=simulated)
    assert judged is not None and judged.answer == answer


def test_outputs_that_are_wrong_when_timed_refute_the_claim() -> None:
    found = Diagnostic(message="a timed call wrote nothing")
    judged = judge_workload(
        Claim(speedup=1.2), failed_bench(Status.REWARD_HACK, diagnostics=(found,)), None
    )
    assert judged.answer == "does_not_hold"
    assert judged.reason == "it is not right: reward_hack, a timed call wrote nothing"


def test_a_time_below_the_memory_s_refutes_and_a_baseline_s_does_not() -> None:
    none = comparison(Verdict.IMPOSSIBLE, speedup=None, interval=None)
    assert _judged(Claim(speedup=1.2), _compared(none, memory_floor_us=3.0)) == "does_not_hold"
    assert _judged(Claim(speedup=1.2), _compared(none, memory_floor_us=0.2)) == "cannot_be_told"


def test_a_baseline_that_does_other_work_is_replaced_by_one_that_does_the_same() -> None:
    unlike = comparison(Verdict.NOT_LIKE_FOR_LIKE, speedup=2.0, like_for_like=UNLIKE)
    fair = comparison(baseline=REFERENCE, speedup=1.1, interval=(1.095, 1.105))
    claim = Claim(speedup=2.0, against="flashinfer_cute")
    judged = judge_workload(claim, _compared(fair, unlike), None)
    assert judged.answer == "does_not_hold"
    assert "does other work (it allocates memory inside the call (1 times))" in judged.reason
    assert "like for like: 1.100x against reference" in judged.reason
    assert _judged(Claim(speedup=2.0), _compared(unlike)) == "cannot_be_told"


def test_a_claim_that_only_a_slow_baseline_supports_does_not_hold() -> None:
    slow = comparison(baseline=REFERENCE, speedup=1.8, interval=(1.795, 1.805))
    claim = Claim(speedup=1.8, against="reference")
    judged = judge_workload(claim, _compared(comparison(), slow), None)
    assert judged.answer == "does_not_hold"
    assert "reached against reference alone" in judged.reason
    assert _judged(Claim(speedup=1.8, against="reference"), _compared(slow)) == "holds"


def test_a_reference_kernel_does_not_stand_in_for_a_library_that_does_not_run() -> None:
    missing = RejectedBaseline(
        name="flashinfer", pdl=True, status="unavailable", reason="not installed"
    )
    result = _compared(comparison(baseline=REFERENCE), rejected=(missing,))
    assert _judged(Claim(speedup=1.2), result) == "cannot_be_told"
    assert _judged(Claim(speedup=1.2, against="reference"), result) == "holds"
    assert _judged(Claim(speedup=1.5), result) == "does_not_hold"
    judged = judge_workload(Claim(speedup=1.2, against="flashinfer"), result, None)
    assert judged.answer == "cannot_be_told"
    assert "flashinfer was not timed here (flashinfer (PDL on): unavailable" in judged.reason


def test_no_difference_that_can_be_told_proves_no_claim() -> None:
    close = comparison(Verdict.INCONCLUSIVE, speedup=1.002, interval=(0.999, 1.005))
    assert _judged(Claim(speedup=1.003), _compared(close)) == "cannot_be_told"


def _workload(name: str, claim: Claim, is_claimed: bool, **fields: Any) -> ReviewedWorkload:
    result = _compared(comparison(**fields))
    judged = judge_workload(claim, result, None)
    return ReviewedWorkload(
        workload=name,
        kernel=f"k_{name}",
        is_claimed=is_claimed,
        answer=judged.answer,
        reason=judged.reason,
        bench=result,
    )


FAST: dict[str, Any] = {"speedup": 1.44, "interval": (1.435, 1.445)}
SLOW: dict[str, Any] = {"speedup": 1.0, "interval": (0.998, 1.002)}


def test_every_workload_that_is_claimed_must_reach_the_claim() -> None:
    claim = Claim(speedup=1.2)
    fast = _workload("b8", claim, True, **FAST)
    slow = _workload("b128", claim, True, **SLOW)
    answer, reasons = judge_claim(claim, (fast, slow), None)
    assert (answer, len(reasons)) == ("does_not_hold", 1)
    assert reasons[0].startswith("b128: 1.000x against")
    other = slow.model_copy(update={"is_claimed": False})
    assert judge_claim(claim, (fast, other), None)[0] == "holds"


def test_a_claim_of_the_mean_may_be_beyond_physics() -> None:
    claim = Claim(speedup=3.0, is_mean=True)
    limit = SpeedLimit(
        gpu="H100",
        baseline="lib",
        baseline_us=2.0,
        least_us=1.0,
        bound="launch",
        speedup=2.0,
        evidence="r",
    )
    one = _workload("b8", claim, True, **FAST).model_copy(update={"bench": None, "limit": limit})
    assert judge_claim(claim, (one, one), None)[0] == "does_not_hold"
    unknown = one.model_copy(update={"limit": None})
    assert judge_claim(claim, (one, unknown), None)[0] == "cannot_be_told"


def test_a_claim_of_the_mean_is_judged_by_the_mean() -> None:
    claim = Claim(speedup=1.2, is_mean=True)
    both = (_workload("b8", claim, True, **FAST), _workload("b128", claim, True, **SLOW))
    mean = mean_speedup(claim, both)
    assert mean is not None and mean.speedup == pytest.approx(1.2)
    answer, (reason,) = judge_claim(claim, both, mean)
    assert (answer, reason.split(",")[0]) == ("holds", "the geometric mean over b8")
    higher = Claim(speedup=1.4, is_mean=True)
    assert judge_claim(higher, both, mean)[0] == "does_not_hold"
    untimed = both[0].model_copy(update={"bench": None, "answer": "cannot_be_told"})
    assert mean_speedup(claim, (untimed, both[1])) is None
    assert judge_claim(claim, (untimed, both[1]), None)[0] == "cannot_be_told"


def test_what_is_wrong_at_another_workload_refutes_the_claim() -> None:
    claim = Claim(speedup=1.2)
    fast = _workload("b8", claim, True, **FAST)
    wrong = fast.model_copy(
        update={
            "workload": "b128",
            "is_claimed": False,
            "answer": "does_not_hold",
            "reason": "it is not right",
            "bench": failed_bench(Status.INCORRECT),
        }
    )
    answer, reasons = judge_claim(claim, (fast, wrong), None)
    assert (answer, reasons) == ("does_not_hold", ("b128: it is not right",))
