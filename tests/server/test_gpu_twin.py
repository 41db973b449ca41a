"""Whole commands through the real stages, on a twin of a GPU: the simulator with scripted times."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.status import Verdict
from kopt.search.reports.run_report import RunReport
from kopt.search.runs import promoting
from kopt.search.step.result import StepResult
from kopt.server import opened_device
from kopt.server.exits import ExitCode
from kopt.tools.bench import plain_copy
from support.bench_results import H100
from support.command_line import Kopt
from support.sim_timer import SimTimer
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # whole runs on a GPU's twin

KERNEL = "scale_rows_b8xh64"
TimeOf = Callable[[LaunchPlan], float]
Twin = Callable[..., None]


def _wide_blocks_are_faster(plan: LaunchPlan) -> float:
    return 6.0 if plan.launches[0].block[0] == 128 else 5.0


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    """Return a function that makes every GPU a twin with the given times."""

    def nothing_kept(*_: object) -> None:
        """Find no copy that another test has timed on the same twin."""

    monkeypatch.setattr(plain_copy, "load_kept", nothing_kept)

    def install(time_of: TimeOf = _wide_blocks_are_faster, facts: DeviceFacts = H100) -> None:
        @contextmanager
        def open_device(
            name: str, settings: Settings, *_: object, **__: object
        ) -> Generator[object]:
            assert name == "cuda:0"
            yield SimTimer(settings, time_of, facts)

        monkeypatch.setattr(opened_device, "open_device", open_device)
        monkeypatch.setattr(promoting, "open_device", open_device)

    return install


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a tiny problem without a library."""
    return write_tiny_problem(tmp_path)


def test_a_candidate_is_checked_timed_and_judged(kopt: Kopt, twin: Twin, folder: Path) -> None:
    twin()
    ending = kopt(
        "bench", folder / "reference.cu", "--tune", "BLOCK=256", "--device", "cuda:0", "--json"
    )
    result = BenchResult.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert (result.verdict, result.comparisons[0].baseline.label) == (Verdict.FASTER, "reference")
    assert result.comparisons[0].speedup == pytest.approx(1.2)
    assert result.plain_copy is not None
    assert result.plain_copy.latency.median_us == 5.0
    assert result.check.device == "cuda:0"
    assert result.check.compiled.builds[0].arch == "sm_90a"


def test_a_time_below_what_the_memory_allows_is_impossible(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    def instantly(_: LaunchPlan) -> float:
        return 1e-6

    twin(instantly)
    ending = kopt("bench", folder / "reference.cu", "--device", "cuda:0")
    assert ending.code == ExitCode.FELL_SHORT
    assert ending.stdout.startswith("Impossible: ")


def test_a_run_without_a_possible_time_does_not_blame_the_full_check(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    def instantly(_: LaunchPlan) -> float:
        return 1e-6

    twin(instantly)
    words = ("--kernel", KERNEL, "--device", "cuda:0", "--problems", folder.parent)
    ending = kopt("run", *words)
    assert ending.code == ExitCode.FELL_SHORT
    said = "No winner: of those that passed the full check none has a time that is possible."
    assert said in ending.stdout
    assert "no candidate passed" not in ending.stdout


def test_a_sweep_ends_with_a_measured_winner_at_all_its_workloads(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    twin()
    ending = kopt(
        *("run", "--kernel", KERNEL, "--device", "cuda:0", "--json"),
        *("--problems", folder.parent),
    )
    report = RunReport.model_validate_json(ending.stdout)
    assert ending.code == ExitCode.PASSED
    assert report.winner_tune == {"BLOCK": 256}
    assert (report.gpu, report.arch, report.baseline) == (H100, "sm_90a", "reference")
    assert [time.workload for time in report.winner_times] == ["b8xh64", "b32xh256"]
    assert report.best_speedup == pytest.approx(1.2)
    assert (report.plain_copy_us, report.stop_reason) == (5.0, "headroom")
    text = kopt("runs", "show", report.run).stdout
    assert "measured on NVIDIA H100 80GB HBM3 (cuda:0)" in text
    assert "b32xh256: 5.000 us measured, 1.200x reference, 95 % interval" in text
    assert "estimated" not in text


def test_progress_shows_time_and_speed_of_every_candidate(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    twin()
    words = ("--kernel", KERNEL, "--device", "cuda:0", "--problems", folder.parent)
    lines = kopt("run", *words).stderr.splitlines()
    speed = "5.000 us measured, 1.200x (1.200 to 1.200) reference"
    line = f"  2/2 #1 passed {speed}; best {speed} (#1)"
    assert line in [line.partition(" ")[2] for line in lines]  # behind its time


def test_a_run_that_pauses_goes_on_with_its_own_gpu_only(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    asked: list[LaunchPlan] = []

    def interrupted(plan: LaunchPlan) -> float:
        asked.append(plan)
        raise KeyboardInterrupt

    twin(interrupted)
    words = ("--problems", folder.parent, "--json")
    ending = kopt("run", "--kernel", KERNEL, "--device", "cuda:0", *words)
    assert ending.code == ExitCode.INTERRUPTED
    assert asked
    run = ending.document["hint"].split("--resume ")[1].split()[0]

    twin(facts=H100.model_copy(update={"uuid": "GPU-2"}))
    refused = kopt("run", "--resume", run, *words)
    assert refused.code == ExitCode.USAGE
    assert "begin a new run" in refused.document["message"]

    twin()
    assert kopt("run", "--resume", run, *words).code == ExitCode.PASSED


def test_a_step_of_a_measured_run_keeps_its_gpu_and_says_what_was_measured(
    kopt: Kopt, twin: Twin, folder: Path
) -> None:
    twin()
    words = ("--problems", folder.parent, "--json")
    ending = kopt("step", "--kernel", KERNEL, "--device", "cuda:0", *words)
    result = StepResult.model_validate_json(ending.stdout)
    assert (ending.code, result.gpu, result.baseline) == (ExitCode.PASSED, H100, "reference")
    assert result.beam[0].speedup == pytest.approx(1.2)
    assert result.message.endswith("#1 leads now, 1.200x reference (measured)")
    assert result.bottleneck is not None
    # The device is that of the run, without being named again.
    ended = kopt("step", "--run", result.run, "--problems", folder.parent)
    assert (ended.code, "is the winner" in ended.stdout) == (ExitCode.PASSED, True)
    assert "measured on NVIDIA H100 80GB HBM3 (cuda:0)" in ended.stdout


def test_a_finished_run_is_shown_again_without_its_gpu(
    kopt: Kopt, twin: Twin, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin()
    words = ("--problems", folder.parent, "--json")
    first = kopt("run", "--kernel", KERNEL, "--device", "cuda:0", *words).document

    def unplugged(*_: object, has_spare: bool) -> object:
        del has_spare
        raise SetupError("there is no NVIDIA driver here")

    monkeypatch.setattr(opened_device, "open_device", unplugged)
    assert kopt("run", "--resume", first["run"], *words).document == first
