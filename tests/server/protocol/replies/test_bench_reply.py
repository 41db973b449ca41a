"""Replies to benchmarks: a ratio with its interval on a GPU, nothing but estimates on sim."""

import pytest

from kopt.kernels.bench_result import BenchResult, Comparison, DeviceState, Latency, TimedOutputs
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.server.protocol.replies.reply import job_reply
from support.bench_results import bench_result, check, comparison, failed_bench
from support.job_views import done_job
from support.sound_replies import PAGE_TOKENS, links_of, sound, text_of


def estimated() -> BenchResult:
    """Return what sim gives: a ratio of estimates to the reference kernel."""
    guess = Latency(median_us=2.0, replays=0, provenance=Provenance.ESTIMATED)
    against = Comparison.model_validate(
        comparison(Verdict.ESTIMATED).model_dump()
        | {
            "speedup": 1.5,
            "interval": None,
            "pairs": 0,
            "noise_floor": None,
            "log_ratios": (),
            "baseline": {"name": "reference"},
            "baseline_latency": guess.model_copy(update={"median_us": 3.0}).model_dump(),
            "provenance": Provenance.ESTIMATED,
        }
    )
    return bench_result(
        Verdict.ESTIMATED,
        device="sim",
        gpu=None,
        comparisons=(against,),
        rejected=(),
        latency=guess,
        **dict.fromkeys(
            ("warm_us", "null_kernel_us", "achieved_gb_s", "copy_gb_s", "rotation", "state")
        ),
        timed_outputs=None,
    )


def test_faster_is_said_with_ratio_interval_baseline_and_device() -> None:
    facts = sound(job_reply(done_job(bench_result()), "concise"))
    (row,) = facts["measured"]["speedups"]
    assert facts["verdict"] == "faster"
    assert (row["speedup"], row["interval_95"]) == (1.213, [1.205, 1.221])
    assert row["baseline"] == "flashinfer_cute (PDL on)"
    assert row["noise_threshold_fraction"] == 0.003
    assert facts["gpu"] == "NVIDIA H100 80GB HBM3"
    assert "1.213x faster" in facts["answer"]
    assert "full check stands behind it" in facts["next"]
    quick = sound(job_reply(done_job(bench_result(checked="quick")), "concise"))
    assert "level=full" in quick["next"]


def test_sim_is_never_said_to_be_faster() -> None:
    for detail in ("concise", "full"):
        reply = job_reply(done_job(estimated()), detail)
        facts = sound(reply, PAGE_TOKENS)
        assert facts["verdict"] == "estimated"
        assert facts["answer"].startswith("ESTIMATED, NOT MEASURED: 2 us")
        assert "1.5x the naive reference" in facts["answer"]
        ratios = facts["estimated"].get("ratios")
        expected = [{"baseline": "reference", "ratio": 1.5, "baseline_us": 3.0}]
        assert ratios == (expected if detail == "full" else None)
        assert "measured" not in facts or set(facts["measured"]) == {"elapsed_s"}
        assert "speedup" not in text_of(reply)
        assert "faster" not in text_of(reply)


@pytest.mark.parametrize(
    ("verdict", "tool"),
    [
        (Verdict.SLOWER, "profile"),
        (Verdict.INCONCLUSIVE, "profile"),
        (Verdict.IMPOSSIBLE, "profile"),
        (Verdict.NOT_LIKE_FOR_LIKE, "profile"),
    ],
)
def test_other_verdicts_do_not_say_faster_and_lead_on(verdict: Verdict, tool: str) -> None:
    result = bench_result(verdict)
    if verdict is Verdict.IMPOSSIBLE:
        against = comparison(verdict, speedup=None, interval=None)
        result = bench_result(verdict, comparisons=(against,))
    reply = job_reply(done_job(result), "concise")
    facts = sound(reply)
    assert facts["verdict"] == verdict.value
    assert tool in facts["next"]
    assert "faster" not in text_of(reply)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_candidate_that_fails_is_no_error_and_has_no_speed(status: Status) -> None:
    result = failed_bench(status, diagnostics=(Diagnostic(message="wrong here", line=3),))
    reply = job_reply(done_job(result, "one\ntwo\n  three\n"), "concise")
    facts = sound(reply)
    assert not reply.is_error
    assert facts["status"] == status.value
    assert facts["diagnostics"][0]["source"].strip() == "three"
    assert "verdict" not in facts
    assert "measured" not in facts
    assert "check_correctness" in facts["next"]


def test_what_makes_times_doubtful_is_said() -> None:
    result = bench_result(
        state=DeviceState(throttle=("hw_slowdown",), other_processes=2),
        timed_outputs=TimedOutputs(calls=214, identical=200, within_gates=4),
        rotation={"sets": 1, "set_bytes": 10, "over_l2": 0.5},
    )
    doubts = " | ".join(sound(job_reply(done_job(result), "concise"))["doubts"])
    for words in ("hw_slowdown", "2 other processes", "10 of 214", "warm"):
        assert words in doubts


def test_many_baselines_and_long_reasons_fit() -> None:
    rejected = [
        {"name": f"library{n}", "pdl": False, "status": "unavailable", "reason": "why " * 2000}
        for n in range(50)
    ]
    result = bench_result(
        comparisons=tuple(comparison() for _ in range(20)),
        rejected=rejected,
        tune={f"VALUE_{n:03}": n for n in range(500)},
    )
    facts = sound(job_reply(done_job(result), "concise"))
    assert facts["left_out"]["not_timed"] == "47 of 50"
    assert "job_wait" in facts["rest"]


def test_reply_links_to_the_whole_result_and_to_a_log_only_where_there_is_one() -> None:
    result = bench_result()
    job = "kopt://jobs/job-20261122-101500-1a2b3c4d"
    concise, full = (job_reply(done_job(result), detail) for detail in ("concise", "full"))
    assert links_of(concise) == []
    assert links_of(full) == [f"{job}/result"]
    check = result.check.model_copy(
        update={"compiled": result.check.compiled.model_copy(update={"log_path": "/tmp/x.log"})}
    )
    logged = job_reply(done_job(result.model_copy(update={"check": check})), "full")
    assert links_of(logged) == [f"{job}/result", f"{job}/log"]
    assert "/tmp/x.log" not in text_of(logged)


@pytest.mark.parametrize("verdict", [Verdict.FASTER, Verdict.SLOWER])
def test_next_step_keeps_the_tune_values_that_are_no_defaults(verdict: Verdict) -> None:
    passed = check()
    compiled = passed.compiled.model_copy(update={"chosen_tune": {"BLOCK": 512}})
    passed = passed.model_copy(update={"compiled": compiled})
    tuned = bench_result(verdict, check=passed, checked="quick")
    assert 'tune={"BLOCK": 512}' in sound(job_reply(done_job(tuned), "concise"))["next"]
