"""Which library path was fastest is known for the versions of libraries it was found with."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.tools.bench import baselines
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from support.bench_cases import CANDIDATE, OTHER, ROW_MAJOR, bench_problem
from support.scripted_timer import QUIET, LibraryScript, Script, ScriptedTimer

SLOW, FAST = LibraryScript(us=6.0), LibraryScript(us=4.5)

pytestmark = pytest.mark.usefixtures("compiler")


def _main_path(request: BenchRequest, lib: LibraryScript, settings: Settings) -> str:
    other = SLOW if lib is FAST else FAST
    libraries = {("lib", False): lib, ("lib", True): SLOW, ("other", False): other}
    timer = ScriptedTimer(Script(noise=QUIET, libraries=libraries))
    return bench_candidate(request, timer, settings).comparisons[0].baseline.name


@pytest.mark.slow  # a choice is measured for each
@pytest.mark.parametrize("library", ["torch", "deep-gemm", "nvidia-cudnn-frontend"])
def test_another_version_of_a_library_makes_the_choice_anew(
    library: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = bench_problem(tmp_path / "problem", (ROW_MAJOR, OTHER))
    request = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)
    versions = dict[str, str]()

    def version(distribution: str) -> str:
        return versions.get(distribution, "1")

    monkeypatch.setattr(baselines, "version", version)
    assert _main_path(request, FAST, settings) == "lib"
    assert _main_path(request, SLOW, settings) == "lib"
    versions[library] = "2"
    assert _main_path(request, SLOW, settings) == "other"
