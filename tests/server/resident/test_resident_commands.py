"""Commands that share a resident evaluator, and `kopt gpu`; the GPU is a twin."""

from pathlib import Path
from typing import Never

import pytest

from kopt.config.errors import SetupError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.status import Verdict
from kopt.server.commands import gpu_resident
from kopt.server.exits import ExitCode
from kopt.tools.bench import plain_copy
from kopt.tools.gpu import open_gpu
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.resident import starting
from kopt.tools.resident.control import ResidentEvaluators
from support import resident_twin
from support.bench_results import H100
from support.command_line import Ending, Kopt
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # an evaluator is a Python that loads kopt


@pytest.fixture
def folder(
    kopt: Kopt, resident_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return the folder of a tiny problem on a machine whose GPU is a twin."""

    def refused(*_: object, **__: object) -> Never:
        raise SetupError("a worker of its own is asked for")

    def nothing_kept(*_: object) -> None:
        """Find no copy that another test has timed on the same twin."""

    monkeypatch.setenv("KOPT_HOME", str(resident_settings.home))  # `kopt` has set another
    monkeypatch.setattr(starting, "PROGRAM", (resident_twin.__file__, "twin"))
    monkeypatch.setattr(open_gpu, "open_gpu", refused)
    monkeypatch.setattr(plain_copy, "load_kept", nothing_kept)
    return write_tiny_problem(tmp_path)


def _found_gpu(name: str) -> FoundGpu:
    assert name == "cuda:0"
    return FoundGpu(H100, load_gpus()["H100"])


def _nothing_needed() -> None:
    """Find what a test's evaluator does without."""


def _evaluators(ending: Ending) -> ResidentEvaluators:
    assert ending.code == ExitCode.PASSED, ending
    return ResidentEvaluators.model_validate_json(ending.stdout)


def test_benchmarks_share_an_evaluator_that_status_shows_and_stop_ends(
    kopt: Kopt, folder: Path
) -> None:
    words = ("bench", folder / "reference.cu", "--tune", "BLOCK=256", "--device", "cuda:0")
    for _ in range(2):
        ending = kopt(*words, "--json")
        result = BenchResult.model_validate_json(ending.stdout)
        assert ending.code == ExitCode.PASSED, ending
        assert (result.verdict, result.device, result.gpu) == (Verdict.FASTER, "cuda:0", H100)
    (first,) = _evaluators(kopt("gpu", "status", "--json")).evaluators
    assert first.turns > 2
    assert 0 < first.busy_share <= 1
    shown = kopt("gpu", "status")
    assert f"{first.pid}" in shown.stdout
    assert "stays 60 s idle" in shown.stdout
    (stopped,) = _evaluators(kopt("gpu", "stop", "--now", "--json")).evaluators
    assert (stopped.pid, stopped.is_stopping) == (first.pid, True)


@pytest.mark.parametrize("words", [("bench", "--promote"), ("review", "--claim", "1.2x")])
def test_what_claims_or_judges_a_speedup_has_workers_of_its_own(
    kopt: Kopt, folder: Path, words: tuple[str, ...]
) -> None:
    command, *options = words
    ending = kopt(command, folder / "reference.cu", "--device", "cuda:0", *options)
    assert ending.code == ExitCode.MACHINE
    assert "a worker of its own is asked for" in ending.stderr


def test_an_evaluator_is_started_once(
    kopt: Kopt, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder
    monkeypatch.setattr(gpu_resident, "find_gpu", _found_gpu)
    monkeypatch.setattr(gpu_resident, "require_worker_modules", _nothing_needed)
    for _ in range(2):
        (one,) = _evaluators(kopt("gpu", "start", "--idle", "50", "--json")).evaluators
        assert (one.device, one.idle_s) == ("cuda:0", 50)


def test_where_none_listens_it_is_said(kopt: Kopt) -> None:
    ending = kopt("gpu", "status")
    assert "kopt gpu start starts one" in ending.stdout
    assert kopt("gpu", "stop", "--device", "cuda").code == ExitCode.USAGE


def test_a_file_of_another_kind_beside_the_sockets_harms_nobody(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    folder = tmp_path / "gpu"
    folder.mkdir()
    for name in ("notes.sock", "cuda-0-old-one.sock"):
        (folder / name).touch()
    ending = kopt("gpu", "stop", "--device", "cuda:0")
    assert ending.code == ExitCode.PASSED
    assert "kopt gpu start starts one" in ending.stdout
