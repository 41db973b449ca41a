"""What a benchmark says while it works."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from support.bench_cases import CANDIDATE, ROW_MAJOR, bench_problem
from support.scripted_timer import LibraryScript, Script, ScriptedTimer


@pytest.mark.usefixtures("compiler")
def test_each_library_path_is_named_before_it_is_checked(
    tmp_path: Path, settings: Settings
) -> None:
    libraries = {("lib", False): LibraryScript(), ("lib", True): LibraryScript()}
    problem = bench_problem(tmp_path / "problem", (ROW_MAJOR,))
    lines: list[str] = []
    request = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), progress=lines.append)
    bench_candidate(request, ScriptedTimer(Script(libraries=libraries)), settings)
    checking = [line.split(";")[0] for line in lines if "the baseline " in line]
    assert checking == ["checking the baseline lib", "checking the baseline lib with PDL"]
