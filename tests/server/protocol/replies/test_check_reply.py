"""Replies to checks: what a sanitizer and a GPU add, and what the next step is."""

from typing import Any

import pytest

from kopt.kernels.check_result import (
    CheckResult,
    SanitizerResult,
    SanitizerRun,
    TensorAccuracy,
    WorkloadCheck,
)
from kopt.kernels.record import Diagnostic, Record
from kopt.kernels.status import Status
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.work.requests import CheckWork, CompileWork, Work
from support.bench_results import KERNEL, check
from support.job_views import done_job
from support.sound_replies import PAGE_TOKENS, sound


def sanitized(*runs: SanitizerRun) -> SanitizerResult:
    status = next((run.status for run in runs if run.status is not Status.PASSED), Status.PASSED)
    return SanitizerResult(
        status=status, kernel=KERNEL, candidate="c" * 64, device="cuda:0", runs=runs, elapsed_s=1.0
    )


def workloads(count: int) -> tuple[WorkloadCheck, ...]:
    return tuple(
        WorkloadCheck(
            workload=f"b{n}xh14336",
            status=Status.PASSED,
            visible_seeds=3,
            hidden_seeds=2,
            poisons=2,
            schedules=1,
            executions=n,
            elapsed_s=0.1,
        )
        for n in range(count)
    )


def next_after(work: Work, result: Record) -> str:
    view = done_job(result)
    asked = view.request.model_copy(update={"work": work})
    reply = job_reply(view.model_copy(update={"request": asked}), "concise")
    return str(sound(reply)["next"])


def reply_to(result: CheckResult, **fields: Any) -> dict[str, Any]:
    return sound(job_reply(done_job(result.model_copy(update=fields)), "concise"))


def test_findings_of_a_sanitizer_are_diagnostics_and_its_silence_is_told() -> None:
    finding = Diagnostic(message="racecheck: Race reported", line=41)
    found = SanitizerRun(
        tool="racecheck",
        outcome="findings",
        status=Status.DATA_RACE,
        findings=(finding,),
        elapsed_s=0.5,
    )
    silent = SanitizerRun(
        tool="memcheck",
        outcome="unavailable",
        status=Status.PASSED,
        reason="not installed",
        elapsed_s=0.0,
    )
    facts = reply_to(check(Status.DATA_RACE), sanitizer=sanitized(found, silent))
    assert facts["diagnostics"][0]["line"] == 41
    assert facts["sanitizer"] == ["racecheck findings", "memcheck unavailable: not installed"]


def test_quick_pass_leads_to_benchmark_and_names_the_full_level() -> None:
    following = reply_to(check())["next"]
    assert "benchmark" in following
    assert "level=full" in following


@pytest.mark.parametrize("status", [Status.PASSED, Status.COMPILE_ERROR, Status.PLAN_ERROR])
def test_every_next_call_has_the_target_that_was_asked_for(status: Status) -> None:
    work = CheckWork(kernel=KERNEL, device="sim", arch="sm_90a")
    following = next_after(work, check(status))
    assert following.lower().count("call ") == following.count("arch=sm_90a") > 0


def test_a_failed_compile_for_several_targets_is_called_again_with_all() -> None:
    failed = {"status": Status.COMPILE_ERROR}
    work = CompileWork(kernel=KERNEL, arch=("sm_90a", "sm_80"))
    following = next_after(work, check().compiled.model_copy(update=failed))
    assert 'compile with kernel=silu_and_mul_b8xh14336, arch=["sm_90a", "sm_80"]' in following


def test_full_pass_leads_to_benchmark_on_the_same_device() -> None:
    following = reply_to(check(), level="full")["next"]
    assert following.startswith("Call benchmark")
    assert "device=cuda:0" in following
    assert "level=full" not in following


def test_pass_on_sim_says_what_it_does_not_show() -> None:
    full = sound(job_reply(done_job(check().model_copy(update={"device": "sim"})), "full"), 5_000)
    assert "speed is not" in full["device_note"]
    assert "device_note" not in reply_to(check())


def test_many_workloads_are_counted_and_all_on_the_pages() -> None:
    result = check().model_copy(update={"workloads": workloads(60)})
    facts = sound(job_reply(done_job(result), "concise"))
    assert facts["left_out"]["executed"] == "52 of 60"
    whole = sound(job_reply(done_job(result), "full"), PAGE_TOKENS)
    assert len(whole["executed"]) == 60
    assert whole["executed"][7] == "b7xh14336 passed: 3 seeds, 2 hidden seeds, 1 schedule, 7 runs"


def test_accuracy_that_is_infinite_is_told_in_words() -> None:
    row = TensorAccuracy(
        tensor="out",
        mismatch_fraction=0.5,
        max_abs=float("inf"),
        max_rel=float("nan"),
        within_fixed_limits=False,
        l2_ratio=None,
    )
    view = done_job(check().model_copy(update={"accuracy": (row,)}))
    assert view.result is not None
    view.result["accuracy"][0] |= {"max_abs": float("inf"), "max_rel": float("nan")}
    (shown,) = sound(job_reply(view, "concise"))["computed"]["accuracy"]
    assert (shown["max_abs"], shown["max_rel"]) == ("inf", "nan")


def test_unsupported_on_sim_points_to_wrapper_and_gpu() -> None:
    facts = reply_to(check(Status.UNSUPPORTED_ON_SIM), device="sim")
    assert "<kopt/...>" in facts["what_to_do"]
    assert "device=cuda:0" in facts["next"]


def test_quarantined_candidate_is_not_sent_again() -> None:
    assert "another candidate" in reply_to(check(Status.QUARANTINED))["next"]


def test_next_step_keeps_the_tune_values_that_are_no_defaults() -> None:
    passed = check()
    compiled = passed.compiled.model_copy(update={"chosen_tune": {"BLOCK": 512}})
    asked = 'tune={"BLOCK": 512}'
    assert asked in reply_to(passed, compiled=compiled)["next"]
    assert asked in reply_to(passed, compiled=compiled, level="full")["next"]
    assert asked in reply_to(passed, compiled=compiled, status=Status.DATA_RACE)["next"]
    assert "tune" not in reply_to(passed)["next"]
    shown = sound(job_reply(done_job(compiled), "concise"))
    assert shown["tune"] == "BLOCK=512"
    assert asked in shown["next"]


def test_tune_values_of_a_hostile_candidate_fit_in_next() -> None:
    tune = {f"T{n}\n" * 400: n for n in range(64)}
    compiled = check().compiled.model_copy(update={"chosen_tune": tune})
    assert "the same tune" in reply_to(check(), compiled=compiled)["next"]
