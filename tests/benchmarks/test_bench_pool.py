"""What the benchmark of a pool makes of a sweep: rows, agreement of verdicts, who is killed."""

import os
import re
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest
from pool_kills import (
    PoolLook,
    ProcessFacts,
    away_and_back,
    choose_victim,
    processes_below,
)
from pool_search import SearchFigures, one_gpu_words
from pool_sweep import (
    PoolSweep,
    SweepOutcome,
    SweepPlace,
    SweptCandidate,
    first_after_s,
    sweep_choices,
    sweep_jobs,
)
from pool_table import (
    KillFigures,
    PoolRow,
    agreement_table,
    kill_table,
    row_of,
    search_table,
    sweep_table,
)
from pool_verdicts import AgreementCount, SpeedReading, agreement, least_agreeing, read_evaluation

from kopt.config.errors import InfraError, SetupError
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import (
    LATENCY,
    NOISE_FLOOR,
    Evaluation,
    EvaluationJob,
    MetricValue,
)
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.sim.device import SimDevice
from support.bench_results import bench_result
from support.populations import timed, with_value

KERNEL = "silu_and_mul_b8xh14336"


def _reading(candidate: int, speed: float, verdict: Verdict = Verdict.FASTER) -> SpeedReading:
    """Return a speedup that is known to 1 %, of a device that tells 0.4 % from nothing."""
    interval = (speed * exp(-0.01), speed * exp(0.01))
    return SpeedReading(candidate, Status.PASSED, speed, interval, 0.004, "flashinfer", verdict)


@pytest.mark.parametrize(
    ("distance", "within", "widened"),
    [(0.0, 1, 1), (0.0141, 1, 1), (0.0143, 0, 1), (0.0152, 0, 1), (0.0153, 0, 0)],
)
def test_two_speeds_agree_up_to_the_root_of_their_squared_half_widths(
    distance: float, within: int, widened: int
) -> None:
    for sign in (1, -1):
        found = agreement({0: _reading(0, 2.0)}, [_reading(0, 2.0 * exp(sign * distance))])
        assert (found.compared, found.within, found.widened) == (1, within, widened)
        assert found.largest_percent == pytest.approx(100 * (exp(distance) - 1))


def test_the_end_of_an_interval_that_faces_the_other_one_counts() -> None:
    upwards = SpeedReading(0, Status.PASSED, 1.0, (0.999, 1.1), unit="b")
    downwards = SpeedReading(0, Status.PASSED, 1.05, (1.0, 1.051), unit="b")
    assert agreement({0: upwards}, [downwards]).within == 1
    far = SpeedReading(0, Status.PASSED, 0.95, (0.949, 0.951), unit="b")
    assert agreement({0: upwards}, [far]).within == 0


def test_a_timed_evaluation_is_read_with_its_verdict_and_an_estimate_by_its_time(
    tmp_path: Path,
) -> None:
    artifacts = open_artifacts(tmp_path)
    sha = artifacts.put(bench_result(Verdict.SLOWER).model_dump_json(by_alias=True).encode())
    measured = timed(2.0, 0.5, baseline="flashinfer", half_width=0.005)
    measured = with_value(measured, NOISE_FLOOR, 0.004, Provenance.MEASURED)
    found = read_evaluation(7, measured.model_copy(update={"artifacts": {"bench": sha}}), artifacts)
    expected = SpeedReading(7, Status.PASSED, 0.5, (0.495, 0.505), 0.004, "flashinfer")
    assert found == replace(expected, verdict=Verdict.SLOWER)
    estimate = MetricValue.of("b8", (LATENCY, "us"), Provenance.ESTIMATED, 4.0)
    on_sim = Evaluation(status=Status.PASSED, summary="", device="sim", values=(estimate,))
    assert read_evaluation(8, on_sim, artifacts) == SpeedReading(8, Status.PASSED, 0.25)


def test_contrary_verdicts_are_counted_apart_from_those_that_are_only_less_certain() -> None:
    alone = {n: _reading(n, 1.02) for n in range(3)}
    others = [
        _reading(0, 1.02),
        _reading(1, 1.005, Verdict.INCONCLUSIVE),
        _reading(2, 0.98, Verdict.SLOWER),
    ]
    found = agreement(alone, others)
    assert (found.same_verdict, found.opposite) == (1, 1)


def test_failures_agree_with_failures_and_other_baselines_are_not_compared() -> None:
    failed = SpeedReading(0, Status.INCORRECT, None)
    other = SpeedReading(2, Status.PASSED, 1.0, (0.9, 1.1), unit="another")
    alone = {0: failed, 1: _reading(1, 1.0), 2: _reading(2, 1.0)}
    found = agreement(alone, [failed, SpeedReading(1, Status.CRASH, None), other])
    assert (found.compared, found.within, found.widened, found.not_compared) == (1, 1, 1, 2)


def test_as_many_agree_by_chance_as_the_binomial_law_says() -> None:
    assert least_agreeing(0) == 0
    assert least_agreeing(1) == 0  # one of twenty differs
    assert least_agreeing(60) == 53
    assert least_agreeing(240) == 220


def test_the_process_that_has_worked_longest_is_killed_and_no_spare() -> None:
    found = [
        ProcessFacts(1, "bwrap -- python -m kopt.tools.gpu.worker", 1),
        ProcessFacts(2, "python -m kopt.tools.gpu.worker", 900),
        ProcessFacts(3, "python -m kopt.tools.gpu.worker", 30),
        ProcessFacts(4, "python bench_pool.py", 5000),
    ]
    assert choose_victim(found, "kopt.tools.gpu.worker") == found[1]
    assert choose_victim(found, "kopt.tools.gpu.worker", {3}) == found[2]
    assert choose_victim(found, "kopt.tools.gpu.worker", {77}) == found[1]
    assert choose_victim(found, "ray::Seat") is None


def test_processes_of_others_are_never_looked_at() -> None:
    own = processes_below(os.getpid(), "")
    assert os.getpid() not in {one.pid for one in own}
    assert os.getppid() not in {one.pid for one in own}


def test_an_evaluator_is_back_when_it_serves_again() -> None:
    looks = [
        PoolLook(9.0, ("restarting", "busy")),  # before the kill
        PoolLook(10.5, ("busy", "busy")),
        PoolLook(12.0, ("busy", "restarting")),
        PoolLook(13.0, ("free", "starting")),
        PoolLook(14.5, ("busy", "free")),
    ]
    assert away_and_back(looks, 10.0) == (2.0, 4.5)
    assert away_and_back(looks[:4], 10.0) == (2.0, None)
    assert away_and_back(looks[:2], 10.0) == (None, None)
    assert away_and_back([], 10.0) == (None, None)


def _swept(candidate: int, place: int, began_s: float, ended_s: float) -> SweptCandidate:
    found = Evaluation(
        status=Status.PASSED,
        summary="passed",
        device="cuda:0",
        elapsed_s=ended_s - began_s,
        gpu_seconds=0.75 * (ended_s - began_s),
    )
    return SweptCandidate(candidate, found, place, began_s, ended_s)


def test_a_device_is_back_with_the_first_evaluation_begun_after_the_kill() -> None:
    outcome = SweepOutcome(
        3, done=[_swept(0, 0, 1.0, 6.0), _swept(1, 0, 5.5, 9.0), _swept(2, 1, 5.5, 7.0)]
    )
    assert first_after_s(outcome, 0, 5.0) == 4.0
    assert first_after_s(outcome, 0, 5.6) is None


def test_what_has_no_result_is_lost_and_what_has_two_was_paid_twice() -> None:
    outcome = SweepOutcome(4, 60.0, [_swept(n, 0, 0.0, 4.0) for n in (0, 1, 1)], repeated=2)
    row = row_of("local", 2, outcome)
    assert (row.lost, row.repeated, row.twice) == (2, 2, 1)
    assert row.evaluations_a_minute == 3.0
    assert row.busy_share == pytest.approx(9.0 / 60.0 / 2)
    assert row.wait_p50_s == pytest.approx(1.0)


def test_speed_up_is_over_one_gpu_of_the_same_way() -> None:
    def row(way: str, gpus: int, rate: float) -> PoolRow:
        return PoolRow(way, gpus, rate, 0.9, 1.0, 2.0, 0, 0, 0, passed=8, utilization=0.5)

    rows = [row("local", 1, 50.0), row("ray", 1, 40.0), row("local", 4, 190.0), row("ray", 2, 60.0)]
    lines = sweep_table(rows).splitlines()[2:]
    assert lines[2].startswith("| local | 4 | 190.0 | 3.80 | 0.95 | 0.90 | 0.50 | 1.00 / 2.00 |")
    assert lines[3].startswith("| ray | 2 | 60.0 | 1.50 | 0.75 |")
    alone = sweep_table([row("ray", 2, 60.0)]).splitlines()[2]
    assert alone.startswith("| ray | 2 | 60.0 | - | - |")


def test_tables_tell_what_was_not_seen_and_leave_out_what_was_not_done() -> None:
    kill = KillFigures("actor", 45.0, None, lost=0, repeated=1, twice=0)
    count = AgreementCount(60, 57, 60, 58, 0, 1.234, not_compared=1)
    row = PoolRow("ray", 2, 60.0, None, 1.0, 2.0, 0, 0, 0, 8, kill, count)
    assert "| ray | 2 | actor | not seen | 45.0 | 0.75 | 0 / 1 / 0 |" in kill_table([row])
    expected = "| ray | 2 | 60 | 57 (95%) | 53 | 60 (100%) | 58 | 0 | 1.23 | 1 |"
    assert expected in agreement_table([row])
    bare = PoolRow("local", 1, 60.0, None, 1.0, 2.0, 0, 0, 0, 8)
    assert kill_table([bare]) == agreement_table([bare]) == search_table([]) == ""


def test_a_search_says_on_which_gpus_it_was_timed() -> None:
    def found(way: str, gpus: int, wall_s: float, by_gpu: tuple[int, ...]) -> SearchFigures:
        return SearchFigures(
            way=way,
            gpus=gpus,
            wall_s=wall_s,
            evaluations=16,
            twice=0,
            requeued=0,
            best="#3 a.cu",
            speed="2.000 (1.990 to 2.010)",
            start_ratio=4.0,
            timings=sum(by_gpu),
            by_gpu=by_gpu,
        )

    rows = [found("ray", 1, 30.0, (18,)), found("ray", 2, 20.0, (10, 8))]
    assert "| ray | 2 | 20.0 | 1.50 | 16 |" in search_table(rows)
    assert "18 of 18 timed evaluations name one GPU" in one_gpu_words(rows[1])
    assert one_gpu_words(rows[1]).endswith("by GPU 10 + 8")
    assert "simulators measure no time" in one_gpu_words(found("ray", 1, 1.0, ()))


def test_each_row_has_sources_of_its_own_and_the_same_candidates() -> None:
    choices = sweep_choices(KERNEL, "sm_90a", Settings(home=Path("unused")))
    assert len(choices) >= 240
    assert choices == sweep_choices(KERNEL, "sm_90a", Settings(home=Path("unused")))
    assert len({(source, str(tune)) for source, tune in choices}) == len(choices)
    one, two = (
        sweep_jobs(choices, len(choices) + 2, (KERNEL, "sm_90a", name)) for name in ("a", "b")
    )
    assert [job.tune for job in one] == [job.tune for job in two]
    assert one[len(choices)].tune == one[0].tune  # again from the first
    assert not {job.source for job in one} & {job.source for job in two}
    assert len({job.run for job in (*one, *two)}) == 2 * len(one)


def test_a_kernel_that_kopt_does_not_write_is_refused() -> None:
    with pytest.raises(SetupError, match="writes no kernels"):
        sweep_choices("attention_decode_batch3_70_page16", "sm_90a", Settings(home=Path("unused")))


def test_an_evaluation_that_the_machine_failed_is_begun_anew_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {3, 5}

    def evaluated(job: EvaluationJob, _: EvaluationSite) -> Evaluation:
        if job.candidate in failing:
            failing.discard(job.candidate)
            raise InfraError("the worker was killed")
        if job.candidate == 7:
            raise InfraError("this one kills each")
        return Evaluation(status=Status.PASSED, summary=job.id, device="sim")

    monkeypatch.setattr("pool_sweep.evaluate_job", evaluated)
    settings = Settings(home=tmp_path)
    site = EvaluationSite(SimDevice(settings), None, settings, open_artifacts(tmp_path))
    told: list[int] = []
    jobs = sweep_jobs([("s", {})], 10, (KERNEL, "sm_90a", "row"))
    outcome = PoolSweep(jobs, 4, lambda: told.append(1)).run([SweepPlace(site, 0)], 3)
    assert sorted(one.candidate for one in outcome.done) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert (outcome.lost, outcome.twice, outcome.repeated) == (1, 0, 2 + 5)
    assert told == [1]
    assert all(re.fullmatch(r"row-\d+/\d+/quick", one.found.summary) for one in outcome.done)
