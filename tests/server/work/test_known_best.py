"""The best that is known beside the result of a tool call, on the simulator."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.best_known import BestKnown, MeasuredWinner
from kopt.search.evaluation import best_known_search
from kopt.search.evaluation.best_known_search import KnownKernelSearch, find_best_known
from kopt.server.opened_device import OpenedDevice
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.work import known_best as module
from kopt.server.work.known_best import known_best
from kopt.server.work.perform import perform
from kopt.server.work.requests import BenchWork
from kopt.server.work.work_site import WarmDevices, WorkSite
from kopt.tools.sim.device import SimDevice
from support.job_views import done_job
from support.job_works import KERNEL, REFERENCE, job_settings
from support.named_gpu import NamedGpu
from support.sound_replies import sound

RUN = BestKnown(
    standing="run",
    arch="sm_90a",
    source="kopt://runs/run-1/candidates/2",
    measured=None,
    estimated_us=0.5,
)


@pytest.fixture
def site(tmp_path: Path, shared_home: Path) -> Generator[WorkSite]:
    settings = job_settings(tmp_path / "home", shared_home)
    devices = WarmDevices(settings)
    yield WorkSite(settings, "job-20260101-000000-00000000", ignore, devices)
    devices.close()


def on_sim(site: WorkSite, arch: str = "sm_90a") -> OpenedDevice:
    return OpenedDevice(SimDevice(site.settings), None, arch)


def of_runs(monkeypatch: pytest.MonkeyPatch, *known: BestKnown) -> None:
    def found(*_: object) -> tuple[BestKnown, ...]:
        return known

    monkeypatch.setattr("kopt.search.reports.best_of_runs.best_of_runs", found)


@pytest.mark.slow  # three benchmarks
def test_a_benchmark_leads_with_the_shipped_winner_and_ends_with_the_naive_kernel(
    site: WorkSite,
) -> None:
    work = BenchWork(kernel=KERNEL, source=REFERENCE, device="sim", arch="sm_90a")
    result = perform(work, site)
    assert isinstance(result, BenchResult)
    known = result.best_known
    assert known is not None and known.standing == "winner" and known.estimated_us is not None
    assert result.latency is not None and known.estimated_us < result.latency.median_us
    facts = sound(job_reply(done_job(result), "concise"))
    answer = facts["answer"]
    assert answer.startswith("ESTIMATED, NOT MEASURED: ")
    assert answer.index("the best known, winner for sm_90a") < answer.index("naive reference")
    assert facts["best_known"]["path"].endswith("winners/silu_and_mul.sm_90a.cu")
    assert "NVIDIA H100" in facts["best_known"]["measured"]


def test_hidden_results_are_not_looked_for(site: WorkSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: KnownKernelSearch) -> None:
        raise AssertionError

    monkeypatch.setattr(best_known_search, "_estimate", fail)
    settings = replace(site.settings, without_sources=("winners",))
    hidden = WorkSite(settings, site.key, ignore, site.devices)
    assert known_best(KERNEL, on_sim(hidden), hidden) is None


@pytest.mark.slow  # compiles and estimates shipped kernels
def test_shipped_kernels_are_estimated_once_and_the_faster_of_two_is_named(
    site: WorkSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def count(search: KnownKernelSearch) -> BestKnown | None:
        asked.append(search.arch)
        return find_best_known(search)

    monkeypatch.setattr("kopt.search.evaluation.best_known_search.find_best_known", count)
    of_runs(monkeypatch)
    shipped = known_best(KERNEL, on_sim(site), site)
    assert shipped is not None and shipped.standing == "winner"
    of_runs(monkeypatch, RUN)
    assert known_best(KERNEL, on_sim(site), site) == RUN
    of_runs(monkeypatch, RUN.model_copy(update={"arch": "sm_80"}))
    assert known_best(KERNEL, on_sim(site), site) == shipped
    assert asked == ["sm_90a"]


def test_on_a_gpu_only_times_of_the_same_gpu_count(
    site: WorkSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = NamedGpu()
    opened = OpenedDevice(gpu, gpu, gpu.facts.arch)

    def measured(name: str, time_us: float) -> BestKnown:
        one = MeasuredWinner(latency_us=time_us, gpu=name, speedup=None, baseline=None)
        return RUN.model_copy(update={"measured": one, "estimated_us": None})

    here, elsewhere = measured(gpu.facts.name, 1.0), measured("NVIDIA H200", 0.1)
    of_runs(monkeypatch, elsewhere, here, RUN)

    def none(*_: object) -> None:
        return None

    monkeypatch.setattr(module, "_shipped", none)
    assert known_best(KERNEL, opened, site) == here
