"""How many tasks of a suite are under way at once, and on what."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server import suite_driving
from kopt.server.opened_device import DeviceChoice, OpenedDevice
from kopt.server.session import Session
from kopt.server.suite_driving import SuiteOptions, drive_suite
from kopt.tools.sim.device import SimDevice
from kopt.tools.suite.results_folder import ResultsFolder
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_stage import SuiteRequest, SuiteRun
from kopt.tools.suite.task_stage import SuiteSite
from support.sim_timer import SimTimer
from support.small_suites import write_suite, write_task

Drive = Callable[[bool, int | None], tuple[Sequence[SuiteSite], list[str]]]


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drive:
    """Return a function that drives a suite, and gives its sites and what was told of waits."""
    folder = write_suite(tmp_path / "kb", "name: kb\nproblems:\n  a: {}\n")
    write_task(folder, "a")
    given: list[Sequence[SuiteSite]] = []
    told: list[str] = []
    on_gpu = True

    @contextmanager
    def opened(
        choice: DeviceChoice, asked: Settings, show: Callable[[str], None]
    ) -> Generator[OpenedDevice]:
        del choice
        show("opening")
        if on_gpu:
            timer = SimTimer(asked, lambda candidate: 1.0)
            yield OpenedDevice(timer, timer, "sm_90a")
        else:
            yield OpenedDevice(SimDevice(asked), None, "sm_90a")
        show("closing")

    def run(request: SuiteRequest, sites: Sequence[SuiteSite], results: ResultsFolder) -> SuiteRun:
        del request
        given.append(sites)
        return SuiteRun(suite="kb", set=results.set, folder=str(results.path), planned=1, kept=0)

    @contextmanager
    def shown(*, quiet: bool) -> Generator[Callable[[str], None]]:
        del quiet
        yield told.append

    monkeypatch.setattr(suite_driving, "opened_device", opened)
    monkeypatch.setattr(suite_driving, "run_suite", run)
    monkeypatch.setattr(suite_driving, "status_line", shown)

    def call(gpu: bool, jobs: int | None) -> tuple[Sequence[SuiteSite], list[str]]:
        nonlocal on_gpu
        on_gpu = gpu
        options = SuiteOptions(folder, "x", None, "full", (), None, None, None, jobs, True)
        drive_suite(
            Session(Settings(home=tmp_path), as_json=False),
            options,
            load_suite(folder),
            lambda run: None,
        )
        return given[-1], told

    return call


def test_a_gpu_is_opened_once_for_each_task_at_once(drive: Drive) -> None:
    sites, told = drive(True, 3)
    assert len({id(site.device) for site in sites}) == 3
    assert all(site.timer is site.device for site in sites)
    assert told == ["opening"]  # what they wait for afterwards is one another


def test_one_task_at_a_time_is_what_a_gpu_does_unasked(drive: Drive) -> None:
    sites, told = drive(True, None)
    assert (len(sites), told) == (1, ["opening", "closing"])


def test_the_simulator_is_opened_once_for_all_tasks(drive: Drive) -> None:
    sites, _ = drive(False, 3)
    assert (len(sites), len({id(site.device) for site in sites})) == (3, 1)
